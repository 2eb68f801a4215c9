#include "muster/parallel/nodes/node_connection.h"

#include <thread>
#include <utility>

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kProblemLength = 64;  // recorded even if memory has run out
constexpr std::size_t kOpenMessages = 256;  // messages that may be open at a time without an allocation

}  // namespace

NodeConnection::NodeConnection(std::unique_ptr<NodeTransport> transport, std::chrono::milliseconds silence,
                               std::function<void(NodeCall&)> done)
    : transport_(std::move(transport)),
      transportName_(transport_->describe()),
      begun_(Clock::now()),
      health_(transport_->node(), transport_->nodes(), transport_->host(), silence, begun_),
      callDone_(std::move(done)),
      open_(kOpenMessages),
      mailboxes_(static_cast<std::size_t>(health_.nodes())) {
  done_.reserve(kOpenMessages);
  const Lock lock(mutex_);
  problem_.reserve(kProblemLength);
}

std::string NodeConnection::problem() const {
  const Lock lock(mutex_);
  return problem_;
}

void NodeConnection::fail(int culprit, std::string_view problem) {
  const Lock lock(mutex_);
  if (problem_.empty()) {
    problem_ = problem;
    culprit_ = culprit;
  }
  failed_ = true;  // last: a thread that sees it reads the cause, too
}

void NodeConnection::fail(const NodeHealth::Failure& failure) {
  if (failure.lost) health_.lose(failure.culprit);
  fail(failure.culprit, failure.problem);
}

void NodeConnection::greet() try {
  for (int n = 0; n < health_.nodes(); ++n) {
    if (n == health_.node()) continue;
    listenTo(n);
    notify(n, NodeNotice::Hello);
  }
  for (int n = 0; n < health_.nodes();) {
    poll();
    if (failed_) throw NodeFailure(problem());
    if (n == health_.node() || health_.greeted(n)) {
      ++n;
      continue;
    }
    if (Clock::now() - begun_ > health_.silence())
      throw NodeFailure(fmt::format("{} has not answered for {} s", health_.nameOf(n),
                                    std::chrono::duration<double>(health_.silence()).count()));
    std::this_thread::sleep_for(1ms);
  }
} catch (const NodeLost& loss) {
  throw NodeFailure(fmt::format("{} is lost: {}", health_.nameOf(loss.node()), loss.what()));
}

void NodeConnection::post(NodeCall* call, const NodeMessage& message) {
  const int ticket = open_.add(call, message);
  const bool sends = message.way == NodeMessage::Way::Send;
  if (sends) sent_ += static_cast<std::int64_t>(message.bytes.size());
  if (sends && !call) mailbox(message.node).sending = true;
  transport_->begin(message, ticket);
}

bool NodeConnection::poll() {
  done_.clear();
  transport_->poll(done_);
  bool calls = false;
  for (const int ticket : done_) {
    const auto [call, message, open] = open_.take(ticket);
    const bool received = message.way == NodeMessage::Way::Receive;
    if (received) health_.hear(message.node, Clock::now());
    if (call) {
      calls = true;
      callDone_(*call);
    } else if (received) {
      hear(message.node);
    } else {
      mailbox(message.node).sending = false;
    }
  }
  return calls;
}

/// Does nothing if the previous notice to the node is still in transfer.
void NodeConnection::notify(int node, NodeNotice::Kind kind, int culprit) {
  if (mailbox(node).sending) return;
  mailbox(node).out = health_.notice(kind, culprit);
  post(nullptr, {NodeMessage::Way::Send, node, kControl, mailbox(node).out.bytes()});
}

/// Posts the last notice to a node once the one before it is sent. @return whether it is sent, too.
bool NodeConnection::sentLast(int node, NodeNotice::Kind kind, int culprit) {
  Mailbox& box = mailbox(node);
  if (box.sending) return false;
  if (!std::exchange(box.last, true)) notify(node, kind, culprit);
  return !box.sending;
}

void NodeConnection::hear(int node) {
  if (const auto failure = health_.take(node, mailbox(node).in)) return fail(*failure);
  if (!health_.ended(node)) listenTo(node);  // else it sends nothing more
}

void NodeConnection::beat() {
  const auto now = Clock::now();
  if (health_.beats(now))
    for (int n = 0; n < health_.nodes(); ++n)
      if (n != health_.node() && !health_.ended(n)) notify(n, NodeNotice::Alive);
  health_.checkSilence(
      now, [this](int n) { return open_.waitsFor(n); },
      [this](const NodeHealth::Failure& failure) { fail(failure); });
}

void NodeConnection::failByException() noexcept {
  int culprit = health_.node();
  try {
    try {
      throw;
    } catch (const NodeLost& loss) {
      culprit = loss.node();
      const bool ended = health_.ended(culprit);
      if (!ended) health_.lose(culprit);
      fail(culprit, ended ? fmt::format("{} has ended its program", health_.nameOf(culprit))
                          : fmt::format("{} is lost: {}", health_.nameOf(culprit), loss.what()));
    } catch (const std::exception& error) {
      fail(culprit, fmt::format("the network of {} has failed: {}", health_.nameOf(culprit), error.what()));
    }
  } catch (...) {
    fail(culprit, "memory has run out in the network of this node");
  }
}

void NodeConnection::end() {
  if (failed_) announceFailure();
  transport_->onNews({});  // the caller's function is not called any more
  transport_.reset();
}

/// For a short time at most: a node that cannot be reached detects the silence.
void NodeConnection::announceFailure() {
  fail(health_.node(), "another thread of this node has failed");  // unless there is a cause already
  for (Mailbox& box : mailboxes_) box.last = false;
  try {
    const auto end = Clock::now() + std::min<std::chrono::milliseconds>(health_.silence() / 4, 500ms);
    for (bool all = false; !all && Clock::now() < end; std::this_thread::sleep_for(1ms)) {
      all = true;
      const auto kind = health_.failed(culprit_) ? NodeNotice::Heard : NodeNotice::Failed;
      for (int n = 0; n < health_.nodes(); ++n)
        if (n != health_.node() && n != culprit_) all = sentLast(n, kind, culprit_) && all;
      try {
        poll();
      } catch (const NodeLost& loss) {  // it cannot be reached any more
        if (!health_.failed(loss.node())) health_.lose(loss.node());
        mailbox(loss.node()).last = true;
        mailbox(loss.node()).sending = false;
      }
    }
  } catch (...) {  // the network fails, too: the other nodes detect the silence
  }
  transport_->abandon();
}

void NodeConnection::announceEnd() {
  for (bool all = false; !all && !failed_;) {
    all = true;
    for (int n = 0; n < health_.nodes(); ++n)
      if (n != health_.node()) all = sentLast(n, NodeNotice::Goodbye) && health_.ended(n) && all;
    if (all) return;
    poll();
    beat();
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace muster
