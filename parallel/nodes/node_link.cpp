#include "muster/parallel/nodes/node_link.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/start_thread.h"
#include "muster/parallel/runtime/task_thread.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr int kGather =
    1;  // a channel; 0 is for messages between links, channels from 2 on belong to the exchange
/// Texts of problems up to this length can be recorded when memory has run out.
constexpr std::size_t kProblemLength = 64;
constexpr std::size_t kOpen = 256;  // messages that may be open at a time without an allocation
constexpr int kSpins = 200;         // polls before the thread sleeps between polls

}  // namespace

NodeLink::NodeLink(const std::function<std::unique_ptr<NodeTransport>()>& make,
                   std::chrono::milliseconds silence)
    : open_(kOpen) {
  require(silence >= 100ms, "nodes: silence must be at least 100 ms, got {}", silence.count());
  calls_.reserve(kOpen);
  taken_.reserve(kOpen);
  done_.reserve(kOpen);
  {
    const Lock lock(mutex_);
    breakdown_.problem.reserve(kProblemLength);
  }
  std::promise<void> promise;
  std::future<void> started = promise.get_future();
  thread_ = startThread("the network", [this, make, silence, promise = std::move(promise)]() mutable {
    run(make, silence, promise);
  });
  started.get();
  const Lock lock(gathering_.mutex);
  gathering_.call = NodeCall(2 * static_cast<std::size_t>(nodes()));
}

NodeLink::~NodeLink() {
  end();
}

bool NodeLink::end() {
  {
    const Lock lock(mutex_);
    ending_ = true;
    posted_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  return !failing_;
}

void NodeLink::begin(NodeCall& call) {
  const Lock lock(mutex_);
  call.open_ = call.messages_.size();
  if (call.open_ == 0 || stopped_) return;
  calls_.push_back(&call);
  posted_.notify_one();
}

void NodeLink::wait(NodeCall& call) {
  Lock lock(mutex_);
  // Wait after a failure, too: until the thread has stopped, it may write to the messages.
  while (call.open_ > 0 && !stopped_) changed_.wait(lock.native());
  if (call.open_ > 0) throw NodeFailure(breakdown_.problem);
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
  begin(call);
  std::ranges::copy(own, part(node()).begin());
}

void NodeLink::gather(std::span<const std::byte> own, std::span<std::byte> all) {
  const Lock lock(gathering_.mutex);
  beginGather(gathering_.call, kGather, own, all);
  wait(gathering_.call);
}

void NodeLink::fail() noexcept {
  failing_ = true;
  posted_.notify_all();
}

void NodeLink::waitIfFailed() const {
  Lock lock(mutex_);
  while (failing_ && !stopped_) changed_.wait(lock.native());
}

bool NodeLink::failed() const {
  const Lock lock(mutex_);
  return failing_ || stopped_;
}

int NodeLink::firstLeft() const {
  waitIfFailed();
  const Lock lock(mutex_);
  const auto& lost = breakdown_.lost;
  return static_cast<int>(std::ranges::find(lost, 0) - lost.begin()) % nodes();
}

void NodeLink::requireWhole() const {
  const Lock lock(mutex_);
  if (const auto& why = breakdown_.problem; !why.empty())
    throw NodeFailure(why);  // also while the other nodes are still being told
  if (failing_) throw NodeFailure("this node has failed before, and the others have been told");
}

/// As `break_`, also if no memory is left for the text.
template <typename Text>
void NodeLink::breakBy(int culprit, Text text) noexcept {
  try {
    break_(culprit, text());
  } catch (const std::exception&) {
    break_(culprit, "memory has run out in the network of this node");
  }
}

void NodeLink::run(const std::function<std::unique_ptr<NodeTransport>()>& make,
                   std::chrono::milliseconds silence, std::promise<void>& started) {
  try {
    start(make, silence);
  } catch (...) {
    if (transport_) transport_->abandon();
    transport_.reset();
    started.set_exception(std::current_exception());
    return;
  }
  started.set_value();
  try {
    serve();
  } catch (const NodeLost& loss) {
    const bool ended = health_.ended(loss.node());
    if (!ended) lose(loss.node());
    breakBy(loss.node(), [&] {
      return ended ? fmt::format("{} has ended its program", nameOf(loss.node()))
                   : fmt::format("{} is lost: {}", nameOf(loss.node()), loss.what());
    });
  } catch (const std::exception& error) {
    breakBy(node(),
            [&] { return fmt::format("the network of {} has failed: {}", nameOf(node()), error.what()); });
  }
  if (failing_) announceFailure();
  transport_->tell({});  // its threads end while the mutex is held
  const Lock lock(mutex_);
  if (breakdown_.problem.empty()) breakdown_.problem = "this node has ended its part in the training";
  stopped_ = true;
  transport_.reset();
  changed_.notify_all();
}

void NodeLink::start(const std::function<std::unique_ptr<NodeTransport>()>& make,
                     std::chrono::milliseconds silence) {
  transport_ = make();
  transportName_ = transport_->describe();
  const auto begin = Clock::now();
  health_ = NodeHealth(transport_->node(), transport_->nodes(), transport_->host(), silence, begin);
  mailboxes_.resize(static_cast<std::size_t>(nodes()));
  {
    const Lock lock(mutex_);
    breakdown_.lost.resize(mailboxes_.size());
  }
  try {
    greet(begin);
  } catch (const NodeLost& loss) {
    throw NodeFailure(fmt::format("{} is lost: {}", nameOf(loss.node()), loss.what()));
  }
}

void NodeLink::serve() {
  // Less than an eighth of the silence, so that a few heartbeats may be late.
  const auto rest = std::min<std::chrono::milliseconds>(health_.silence() / 16, 20ms);
  const bool told = transport_->tell([this] {
    const Lock lock(mutex_);
    news_ = true;
    posted_.notify_one();
  });
  int idle = 0;
  for (;;) {
    idle = serveOnce() ? 0 : idle + 1;
    if (failing_) return;
    Lock lock(mutex_);
    const bool nothingOpen = open_.ofCalls() == 0 && calls_.empty();
    if (nothingOpen && ending_) break;
    if (nothingOpen || (told && idle > 0)) {
      if (calls_.empty() && !news_) posted_.wait_for(lock.native(), rest);
      news_ = false;
      idle = 0;
      continue;
    }
    lock.unlock();
    if (idle < kSpins)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(50us);
  }
  announceEnd();
}

bool NodeLink::serveOnce() {
  const bool taken = takeCalls();
  const bool moved = poll();
  beat();
  return taken || moved;
}

bool NodeLink::takeCalls() {
  {
    const Lock lock(mutex_);
    taken_.swap(calls_);
  }
  for (NodeCall* call : taken_)
    for (const NodeMessage& message : call->messages_) post(call, message);
  const bool any = !taken_.empty();
  taken_.clear();
  return any;
}

void NodeLink::post(NodeCall* call, const NodeMessage& message) {
  const int ticket = open_.add(call, message);
  const bool sends = message.way == NodeMessage::Way::Send;
  if (sends) sent_ += static_cast<std::int64_t>(message.bytes.size());
  if (sends && !call) mailbox(message.node).sending = true;
  transport_->begin(message, ticket);
}

bool NodeLink::poll() {
  done_.clear();
  transport_->poll(done_);
  bool calls = false;
  for (const int ticket : done_) {
    const auto [call, message] = open_.take(ticket);
    const bool received = message.way == NodeMessage::Way::Receive;
    if (received) health_.hear(message.node, Clock::now());
    if (call) {
      calls = true;
      const Lock lock(mutex_);
      if (--call->open_ == 0) changed_.notify_all();
    } else if (received) {
      hear(message.node);
    } else {
      mailbox(message.node).sending = false;
    }
  }
  return calls;
}

void NodeLink::lose(int node) {
  const Lock lock(mutex_);
  breakdown_.lost[static_cast<std::size_t>(node)] = 1;
}

/// Records the problem, unless there was one before.
void NodeLink::break_(int culprit, std::string_view problem) {
  const Lock lock(mutex_);
  if (!breakdown_.problem.empty()) return;
  breakdown_.problem = problem;
  breakdown_.culprit = culprit;
  failing_ = true;
}

}  // namespace muster
