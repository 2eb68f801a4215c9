#include "muster/parallel/nodes/node_link.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/start_thread.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr int kGather = 1;  // a channel; 0 is for notices, channels from 2 on belong to the exchange
constexpr std::size_t kOpenCalls = 256;  // calls that may be begun at a time without an allocation
constexpr int kSpins = 200;              // polls before the thread sleeps between polls

}  // namespace

NodeLink::NodeLink(const MakeTransport& make, std::chrono::milliseconds silence) {
  require(silence >= 100ms, "nodes: silence must be at least 100 ms, got {}", silence.count());
  calls_.reserve(kOpenCalls);
  taken_.reserve(kOpenCalls);
  std::promise<void> promise;
  std::future<void> started = promise.get_future();
  thread_ = startThread("the network", [this, make, silence, promise = std::move(promise)]() mutable {
    run(make, silence, promise);
  });
  started.get();
}

bool NodeLink::end() {
  {
    const Lock lock(mutex_);
    ending_ = true;
    posted_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  return !connection_->failed();
}

void NodeLink::begin(NodeCall& call) {
  const Lock lock(mutex_);
  call.open_ = call.messages_.size();
  if (call.open_ == 0 || stopped_ || connection_->failed()) return;
  calls_.push_back(&call);
  posted_.notify_one();
}

void NodeLink::wait(NodeCall& call) {
  Lock lock(mutex_);
  // Wait after a failure, too: until the thread has stopped, it may write to the messages.
  while (call.open_ > 0 && !stopped_) changed_.wait(lock.native());
  if (call.open_ > 0) throwFailure();
}

void NodeLink::beginGather(NodeCall& call, int channel, std::span<const std::byte> own,
                           std::span<std::byte> all) {
  const auto part = [&](int node) {
    return all.subspan(static_cast<std::size_t>(node) * own.size(), own.size());
  };
  call.clear();
  for (int n = 0; n < nodes(); ++n) {
    if (n == node()) continue;
    call.receive(n, channel, part(n));
    call.send(n, channel, own);
  }
  if (own.data() != part(node()).data()) std::ranges::copy(own, part(node()).begin());
  begin(call);  // from here on the link's thread reads `own`, which may be a part of `all`
}

void NodeLink::gather(std::span<const std::byte> own, std::span<std::byte> all) {
  NodeCall call(2 * static_cast<std::size_t>(nodes()));
  beginGather(call, kGather, own, all);
  wait(call);
}

int NodeLink::firstLeft() const {
  Lock lock(mutex_);
  if (!connection_->failed()) return 0;
  while (!stopped_) changed_.wait(lock.native());
  return connection_->health().firstLeft();
}

void NodeLink::throwFailure() const {
  const std::string why = connection_->problem();  // known before the other nodes know it
  throw NodeFailure(!why.empty() ? why
                    : stopped_   ? "this node has ended its part in the training"
                                 : "this node has failed before, and has reported it to the others");
}

void NodeLink::run(const MakeTransport& make, std::chrono::milliseconds silence,
                   std::promise<void>& started) {
  try {
    connection_ = std::make_unique<NodeConnection>(make(), silence, [this](NodeCall& call) {
      const Lock lock(mutex_);
      if (--call.open_ == 0) changed_.notify_all();
    });
    connection_->greet();
  } catch (...) {
    if (connection_) connection_->abandon();
    started.set_exception(std::current_exception());
    return;
  }
  started.set_value();
  try {
    serve();
  } catch (const std::exception&) {
    connection_->failByException();
  }
  connection_->end();
  const Lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void NodeLink::serve() {
  // Less than an eighth of the silence, so that a few heartbeats may be late.
  const auto rest = std::min<std::chrono::milliseconds>(connection_->health().silence() / 16, 20ms);
  const bool notified = connection_->onNews([this] {
    const Lock lock(mutex_);
    news_ = true;
    posted_.notify_one();
  });
  int idle = 0;
  for (;;) {
    idle = serveOnce() ? 0 : idle + 1;
    if (connection_->failed()) return;
    Lock lock(mutex_);
    const bool nothingOpen = !connection_->callsOpen() && calls_.empty();
    if (nothingOpen && ending_) break;
    if (nothingOpen || (notified && idle > 0)) {
      if (calls_.empty() && !news_) posted_.wait_for(lock.native(), rest);
      news_ = false;
      idle = 0;
      continue;
    }
    lock.unlock();
    idle < kSpins ? std::this_thread::yield() : std::this_thread::sleep_for(50us);
  }
  connection_->announceEnd();
}

/// @return whether anything has happened.
bool NodeLink::serveOnce() {
  {
    const Lock lock(mutex_);
    taken_.swap(calls_);
  }
  for (NodeCall* call : taken_)
    for (const NodeMessage& message : call->messages_) connection_->begin(*call, message);
  const bool taken = !taken_.empty();
  taken_.clear();
  const bool moved = connection_->poll();
  connection_->beat();
  return taken || moved;
}

}  // namespace muster
