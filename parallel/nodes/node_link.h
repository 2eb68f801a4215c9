#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/nodes/node_transport.h"

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

/// As in "node 1 (hosta)".
inline std::string nodeName(int node, const std::string& host) {
  return fmt::format("node {} ({})", node, host);
}

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

  int node() const { return node_; }
  int nodes() const { return nodes_; }
  /// See `nodeName`.
  const std::string& nameOf(int node) const { return names_[static_cast<std::size_t>(node)]; }
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
  /// A message between links, beside the messages of calls.
  struct Control {
    std::uint64_t magic = 0;
    std::int32_t kind = 0;
    std::int32_t culprit = 0;  // for a failure: the node that failed first
    std::int64_t silence = 0;  // of a hello: milliseconds
    std::array<char, 104> host{};

    std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(this, 1)); }
  };
  struct OtherNode {
    std::unique_ptr<Control> in = std::make_unique<Control>(), out = std::make_unique<Control>();
    int inTicket = -1, outTicket = -1;
    bool greeted = false, ended = false, failed = false;  // failed: it has said so
    std::chrono::steady_clock::time_point heard;
  };
  struct Slot {
    NodeCall* call = nullptr;  // null: the slot is free, or holds a message of the link itself
    NodeMessage message;
  };
  using Clock = std::chrono::steady_clock;

  // Called on the link's thread.
  void run(const std::function<std::unique_ptr<NodeTransport>()>& make);
  void start(const std::function<std::unique_ptr<NodeTransport>()>& make);
  void serve();
  bool serveOnce();
  bool takeCalls();
  bool poll();
  void post(NodeCall* call, const NodeMessage& message);
  void greet();
  void listenTo(int node);
  void tell(int node, int kind, int culprit);
  void hear(int node);
  void beat();
  bool waitsFor(int node) const;
  void break_(int culprit, std::string_view problem);
  void lose(int node);
  template <typename Text>
  void breakBy(int culprit, Text text) noexcept;
  void announceFailure();
  void announceEnd();

  std::chrono::milliseconds silence_;  // after the constructor: used by the link's thread only
  int node_ = 0, nodes_ = 1;           // these four: written before the constructor returns
  std::vector<std::string> names_;     // [node]
  std::string transportName_;

  mutable Mutex mutex_;
  mutable std::condition_variable posted_, changed_;
  std::vector<NodeCall*> calls_ MUSTER_GUARDED_BY(mutex_);  // begun, not yet taken by the thread
  bool news_ MUSTER_GUARDED_BY(mutex_) = false;             // the transport has news, not polled yet
  bool started_ MUSTER_GUARDED_BY(mutex_) = false, ending_ MUSTER_GUARDED_BY(mutex_) = false;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::exception_ptr notStarted_ MUSTER_GUARDED_BY(mutex_);
  std::string problem_ MUSTER_GUARDED_BY(mutex_);     // why the link has failed
  std::vector<char> lost_ MUSTER_GUARDED_BY(mutex_);  // [node]
  std::atomic<bool> failing_{false};
  std::atomic<std::int64_t> sent_{0};

  // Used by the link's thread only.
  std::unique_ptr<NodeTransport> transport_;
  std::vector<NodeCall*> taken_;
  std::vector<Slot> slots_;        // [ticket]
  std::vector<int> free_, done_;   // tickets
  std::vector<OtherNode> others_;  // [node]
  int open_ = 0;                   // messages of calls in progress
  int culprit_ = 0;
  Clock::time_point lastLook_, lastBeat_;

  Mutex gathering_;
  NodeCall gatherCall_ MUSTER_GUARDED_BY(gathering_){0};

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
