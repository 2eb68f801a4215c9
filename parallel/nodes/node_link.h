#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/nodes/node_connection.h"

namespace muster {

/// Messages that begin together and are waited for together. Used by one thread at a time.
class NodeCall {
 public:
  /// @param most  messages that fit without allocation.
  explicit NodeCall(std::size_t most) { messages_.reserve(most); }

  void clear() { messages_.clear(); }
  void send(int node, int channel, std::span<const std::byte> bytes) {
    auto* const begin = const_cast<std::byte*>(bytes.data());  // a transport only reads what it sends
    add({NodeMessage::Way::Send, node, channel, {begin, bytes.size()}});
  }
  void receive(int node, int channel, std::span<std::byte> bytes) {
    add({NodeMessage::Way::Receive, node, channel, bytes});
  }

 private:
  friend class NodeLink;
  void add(const NodeMessage& message) {
    if (!message.bytes.empty()) messages_.push_back(message);
  }
  std::vector<NodeMessage> messages_;
  std::size_t open_ = 0;  // messages that are not done; guarded by the link's mutex
};

/// This node's connection to the other nodes of a training: the one thread of the process that communicates.
/// After a failure of this or another node, every later call fails. Members are thread-safe, except `gather`.
class NodeLink {
 public:
  using MakeTransport = std::function<std::unique_ptr<NodeTransport>()>;

  /// @param make  makes the transport on the link's thread, which also uses and destroys it.
  /// @param silence  a node that sends nothing for this long has failed; the longest of all nodes counts.
  ///                 Every node sends several heartbeats in this time, whatever its other threads do.
  /// @throws what `make` throws; NodeFailure if another node does not answer.
  NodeLink(const MakeTransport& make, std::chrono::milliseconds silence);
  ~NodeLink() { end(); }
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  int node() const { return connection_->health().node(); }
  int nodes() const { return connection_->health().nodes(); }
  const std::string& nameOf(int node) const { return connection_->health().nameOf(node); }
  const std::string& transport() const { return connection_->transport(); }

  /// Begins the messages of a call. Allocates only for more than 256 messages at a time. The call and its
  /// bytes must stay in place until `wait` has returned or thrown.
  void begin(NodeCall& call);
  /// Waits until the call's messages are done. @throws NodeFailure naming the node that has failed.
  void wait(NodeCall& call);
  /// Begins a call that sends `own` to every node and receives theirs.
  /// @param all  [node] as many bytes each as `own`; this node's are copied at once.
  void beginGather(NodeCall& call, int channel, std::span<const std::byte> own, std::span<std::byte> all);
  /// As above, and waits. For one thread at a time.
  void gather(std::span<const std::byte> own, std::span<std::byte> all);

  /// Ends the connection: waits until all nodes call it or one has failed. The destructor calls it if the
  /// program has not. @return false after a failure.
  bool end();
  /// Reports to the other nodes that this one has failed; all calls fail from now on. Does not wait.
  void fail() noexcept {
    connection_->fail();
    posted_.notify_all();
  }
  /// After a failure of this or another node: waits until the bytes of no call are read or written any more.
  void waitIfFailed() const {
    Lock lock(mutex_);
    while (connection_->failed() && !stopped_) changed_.wait(lock.native());
  }
  /// @throws NodeFailure after a failure.
  void requireWhole() const {
    const Lock lock(mutex_);
    if (connection_->failed() || stopped_) throwFailure();
  }
  bool failed() const {
    const Lock lock(mutex_);
    return connection_->failed() || stopped_;
  }
  /// The first node that is not known to be lost; 0 unless this link has failed. Waits like `waitIfFailed`. A
  /// node that has announced a failure of its own is not lost.
  int firstLeft() const;
  /// The bytes that this node has sent since the start, without what the transport adds.
  std::int64_t bytesSent() const { return connection_->bytesSent(); }

 private:
  [[noreturn]] void throwFailure() const MUSTER_REQUIRES(mutex_);
  // Called on the link's thread.
  void run(const MakeTransport& make, std::chrono::milliseconds silence, std::promise<void>& started);
  void serve();
  bool serveOnce();

  std::unique_ptr<NodeConnection> connection_;  // other threads: see its members

  mutable Mutex mutex_;
  mutable std::condition_variable posted_, changed_;
  std::vector<NodeCall*> calls_ MUSTER_GUARDED_BY(mutex_);  // begun, not yet taken by the thread
  bool news_ MUSTER_GUARDED_BY(mutex_) = false;             // the transport has news, not polled yet
  bool ending_ MUSTER_GUARDED_BY(mutex_) = false, stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::vector<NodeCall*> taken_;  // used by the link's thread

  std::jthread thread_;  // last: uses the members above
};

/// If an exception leaves its scope, the link fails, so that the other nodes do not wait for this one.
class FailingLink {
 public:
  /// @param link  null: nothing to fail.
  explicit FailingLink(NodeLink* link) : link_(link) {}
  ~FailingLink() {
    if (link_ && std::uncaught_exceptions() > before_) link_->fail();
  }
  FailingLink(const FailingLink&) = delete;
  FailingLink& operator=(const FailingLink&) = delete;
  /// From now on an exception does not fail the link.
  void dismiss() { link_ = nullptr; }

 private:
  NodeLink* link_;
  int before_ = std::uncaught_exceptions();
};

}  // namespace muster
