#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/nodes/node_health.h"
#include "muster/parallel/nodes/node_transport.h"

namespace muster {

class NodeCall;

/// The messages that a link has begun and that are not done. Each has a ticket, by which the transport
/// reports that it is done. Used by one thread.
class OpenMessages {
 public:
  struct Entry {
    NodeCall* call = nullptr;  ///< null: a message of the link itself
    NodeMessage message = {};
    bool open = false;
  };
  /// @param most  messages that may be open at a time without an allocation.
  explicit OpenMessages(std::size_t most) { entries_.reserve(most); }

  /// @return the message's ticket. If memory runs out, the message is not added.
  int add(NodeCall* call, const NodeMessage& message) {
    auto place = std::ranges::find(entries_, false, &Entry::open);
    if (place == entries_.end()) place = entries_.emplace(place);
    *place = {call, message, true};
    return static_cast<int>(place - entries_.begin());
  }
  /// The message is done: its ticket may be used again.
  Entry take(int ticket) { return std::exchange(entries_[static_cast<std::size_t>(ticket)], {}); }
  /// How many are of calls.
  std::ptrdiff_t ofCalls() const {
    return std::ranges::count_if(entries_, [](const Entry& one) { return one.call != nullptr; });
  }
  /// Whether a call waits for a message of this node.
  bool waitsFor(int node) const {
    return std::ranges::any_of(entries_, [node](const Entry& one) {
      return one.call && one.message.node == node && one.message.way == NodeMessage::Way::Receive;
    });
  }

 private:
  std::vector<Entry> entries_;  // [ticket]
};

/// A node's connection to the others as the link's thread sees it: the transport, the messages that are open,
/// and the notices by which nodes say that they have begun, are alive, have failed or end.
class NodeConnection {
 public:
  /// @param done  is called for each message of a call that is done.
  NodeConnection(std::unique_ptr<NodeTransport> transport, std::chrono::milliseconds silence,
                 std::function<void(NodeCall&)> done);

  // Thread-safe:

  /// Other threads than the link's may read nodes and names only; all of it once `end` has returned.
  const NodeHealth& health() const { return health_; }
  const std::string& transport() const { return transportName_; }
  std::int64_t bytesSent() const { return sent_; }
  /// Another thread of this node has failed; its own message says why.
  void fail() noexcept { failed_ = true; }
  bool failed() const { return failed_; }
  /// Why the connection has failed: the first cause counts. "" unless it is known.
  std::string problem() const;

  // For the link's thread:

  /// Waits until all nodes have answered. @throws NodeFailure if one does not.
  void greet();
  void begin(NodeCall& call, const NodeMessage& message) { post(&call, message); }
  bool callsOpen() const { return open_.ofCalls() > 0; }
  /// Advances all messages. @return whether one of a call was done. @throws what the transport throws.
  bool poll();
  /// Sends heartbeats and looks for nodes that send none. Call it often.
  void beat();
  /// The exception in progress has ended the connection.
  void failByException() noexcept;
  /// Waits for nodes that are still working, as long as they send heartbeats; or until a failure.
  void announceEnd();
  bool onNews(std::function<void()> news) { return transport_->onNews(std::move(news)); }
  /// After a failure reports it to the other nodes. Destroys the transport.
  void end();
  /// Destroys the transport. Call it if `greet` has thrown.
  void abandon() noexcept {
    transport_->abandon();
    transport_.reset();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Mailbox {
    NodeNotice in, out;
    bool sending = false;
    bool last = false;  // the last notice was posted
  };
  Mailbox& mailbox(int node) { return mailboxes_[static_cast<std::size_t>(node)]; }
  void post(NodeCall* call, const NodeMessage& message);
  static constexpr int kControl = 0;  // the channel of notices

  void listenTo(int node) {
    post(nullptr, {NodeMessage::Way::Receive, node, kControl, mailbox(node).in.bytes()});
  }
  void notify(int node, NodeNotice::Kind kind, int culprit = 0);
  bool sentLast(int node, NodeNotice::Kind kind, int culprit = 0);
  void hear(int node);
  void announceFailure();
  void fail(int culprit, std::string_view problem);
  void fail(const NodeHealth::Failure& failure);

  std::unique_ptr<NodeTransport> transport_;
  const std::string transportName_;
  const Clock::time_point begun_;
  NodeHealth health_;
  const std::function<void(NodeCall&)> callDone_;
  OpenMessages open_;
  std::vector<int> done_;           // tickets
  std::vector<Mailbox> mailboxes_;  // [node]
  int culprit_ = 0;                 // the node that has failed first
  std::atomic<std::int64_t> sent_{0};
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  std::string problem_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
