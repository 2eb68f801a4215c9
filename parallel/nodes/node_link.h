#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/nodes/node_health.h"
#include "muster/parallel/nodes/node_transport.h"
#include "muster/parallel/nodes/open_messages.h"

namespace muster {

/// Messages that begin together and are waited for together. Used by one thread at a time.
class NodeCall {
 public:
  /// @param most  messages that fit without allocation.
  explicit NodeCall(std::size_t most) { messages_.reserve(most); }

  /// Removes the messages of the previous call.
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
/// The link carries out the calls of other threads, signals the other nodes that this one is alive, and
/// detects nodes that are not. After a failure of this or another node, every later call fails.
///
/// All members are thread-safe.
class NodeLink {
 public:
  /// @param make  makes the transport on the link's thread, which also uses and destroys it.
  /// @param silence  a node that sends nothing for this long has failed; the longest of all nodes counts.
  ///                 Every node sends several heartbeats in this time, whatever its other threads do.
  /// @throws what `make` throws; NodeFailure if another node does not answer.
  NodeLink(const std::function<std::unique_ptr<NodeTransport>()>& make, std::chrono::milliseconds silence);
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  int node() const { return health_.node(); }
  int nodes() const { return health_.nodes(); }
  /// See `nodeName`.
  const std::string& nameOf(int node) const { return health_.nameOf(node); }
  /// As in "MPI".
  const std::string& transport() const { return transportName_; }

  /// Begins the messages of a call. Allocates only for more than 256 messages at a time. The call and its
  /// bytes must stay in place until `wait` has returned or thrown.
  void begin(NodeCall& call);
  /// Waits until the call's messages are done. @throws NodeFailure naming the node that has failed.
  void wait(NodeCall& call);
  /// Begins a call that sends `own` to every node and receives theirs.
  /// @param all  [node] as many bytes each as `own`; this node's are copied at once.
  void beginGather(NodeCall& call, int channel, std::span<const std::byte> own, std::span<std::byte> all);
  /// As above, and waits.
  void gather(std::span<const std::byte> own, std::span<std::byte> all);

  /// Ends the connection: waits until all nodes call it or one has failed. The destructor calls it if the
  /// program has not. @return false after a failure.
  bool end();
  /// Tells the other nodes that this one has failed; all calls fail from now on. Does not wait.
  void fail() noexcept;
  /// After a failure of this or another node: waits until the bytes of no call are read or written any more.
  void waitIfFailed() const;
  /// @throws NodeFailure after a failure.
  void requireWhole() const;
  bool failed() const;
  /// The first node that is not known to be lost; 0 unless this link has failed. Waits like `waitIfFailed`. A
  /// node that has announced a failure of its own is not lost.
  int firstLeft() const;
  /// The bytes that this node has sent since the start, without what the transport adds.
  std::int64_t bytesSent() const { return sent_; }

 private:
  /// The notices in transfer between this node and another one.
  struct Mailbox {
    std::unique_ptr<NodeNotice> in = std::make_unique<NodeNotice>(), out = std::make_unique<NodeNotice>();
    bool sending = false;
  };
  /// All that says that the link has failed.
  struct Breakdown {
    std::string problem;     // why; "": it has not
    int culprit = 0;         // the node that failed first
    std::vector<char> lost;  // [node]
  };
  using Clock = std::chrono::steady_clock;

  // Called on the link's thread.
  void run(const std::function<std::unique_ptr<NodeTransport>()>& make, std::chrono::milliseconds silence,
           std::promise<void>& started);
  void start(const std::function<std::unique_ptr<NodeTransport>()>& make, std::chrono::milliseconds silence);
  void serve();
  bool serveOnce();
  bool takeCalls();
  bool poll();
  void post(NodeCall* call, const NodeMessage& message);
  void greet(Clock::time_point begin);
  void listenTo(int node);
  void tell(int node, NodeNotice::Kind kind, int culprit = 0);
  void hear(int node);
  void beat();
  void break_(int culprit, std::string_view problem);
  void lose(int node);
  template <typename Text>
  void breakBy(int culprit, Text text) noexcept;
  void announceFailure();
  void announceEnd();
  Mailbox& mailbox(int node) { return mailboxes_[static_cast<std::size_t>(node)]; }

  // Written before the constructor returns; of `health_` others read nodes and names.
  std::string transportName_;
  NodeHealth health_;  // used by the link's thread

  mutable Mutex mutex_;
  mutable std::condition_variable posted_, changed_;
  std::vector<NodeCall*> calls_ MUSTER_GUARDED_BY(mutex_);  // begun, not yet taken by the thread
  bool news_ MUSTER_GUARDED_BY(mutex_) = false;             // the transport has news, not polled yet
  bool ending_ MUSTER_GUARDED_BY(mutex_) = false, stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  Breakdown breakdown_ MUSTER_GUARDED_BY(mutex_);
  std::atomic<bool> failing_{false};
  std::atomic<std::int64_t> sent_{0};

  // Used by the link's thread only.
  std::unique_ptr<NodeTransport> transport_;
  std::vector<NodeCall*> taken_;
  std::vector<int> done_;  // tickets
  OpenMessages open_;
  std::vector<Mailbox> mailboxes_;  // [node]

  struct Gathering {
    Mutex mutex;
    NodeCall call MUSTER_GUARDED_BY(mutex){0};
  };
  Gathering gathering_;

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
