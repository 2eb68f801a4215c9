#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster {

/// As in "node 1 (hosta)".
std::string nodeName(int node, const std::string& host);

/// A message between links that belongs to no call.
struct NodeNotice {
  enum Kind : std::int32_t {
    Hello,   ///< the node has started
    Alive,   ///< a heartbeat
    Failed,  ///< the node has failed, or has lost the culprit
    Heard,   ///< the culprit has said that it fails
    Goodbye  ///< the node ends, and sends nothing more
  };
  static constexpr std::uint64_t kMagic = 0x6d75737465723033;

  std::uint64_t magic = kMagic;
  std::int32_t kind = Hello;
  std::int32_t culprit = 0;  // of Failed and Heard: the node that failed first
  std::int64_t silence = 0;  // of the sender: milliseconds
  std::array<char, 104> host{};

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(this, 1)); }
};

/// What a node knows of the others: by what they say, and by how long they say nothing. A value without
/// threads, clocks and messages.
class NodeHealth {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Why the training cannot continue.
  struct Failure {
    int culprit = 0;  ///< the node that failed first
    std::string problem;
    bool lost = false;  ///< the culprit cannot be reached any more
  };

  NodeHealth() = default;
  /// @param silence  see NodeLink.
  NodeHealth(int node, int nodes, const std::string& host, std::chrono::milliseconds silence, Time now);

  int node() const { return node_; }
  int nodes() const { return static_cast<int>(others_.size()); }
  /// The longest of this node's and of those that have said hello, whose heartbeats may be rarer.
  std::chrono::milliseconds silence() const { return silence_; }
  /// Without the host before the node has said hello.
  const std::string& nameOf(int node) const { return of(node).name; }
  bool greeted(int node) const { return of(node).greeted; }
  bool ended(int node) const { return of(node).ended; }
  void lose(int node) { of(node).lost = true; }
  /// The first node that is not lost; 0 if all are.
  int firstLeft() const {
    const auto left = std::ranges::find(others_, false, &Other::lost);
    return left == others_.end() ? 0 : static_cast<int>(left - others_.begin());
  }
  bool failed(int node) const { return of(node).failed; }

  /// What this node says. @param culprit  see NodeNotice.
  NodeNotice notice(NodeNotice::Kind kind, int culprit = 0) const;
  void hear(int node, Time now) { of(node).heard = now; }
  /// The node has sent this notice. @return the failure that it reports, if any.
  std::optional<Failure> take(int node, const NodeNotice& notice);
  /// Whether heartbeats are due; then the next ones are due later. Call it often.
  bool beats(Time now);
  /// Calls `found` for each node that has been silent for too long, or has ended although this node waits for
  /// it. @param waitsFor  whether this node waits for a message of that node.
  void checkSilence(Time now, const std::function<bool(int)>& waitsFor,
                    const std::function<void(const Failure&)>& found) const;

 private:
  struct Other {
    std::string name;
    bool greeted = false, ended = false, failed = false, lost = false;
    Time heard = {};
  };
  Other& of(int node) { return others_[static_cast<std::size_t>(node)]; }
  const Other& of(int node) const { return others_[static_cast<std::size_t>(node)]; }
  bool isNode(int node) const { return node >= 0 && node < nodes(); }

  int node_ = 0;
  std::string host_;
  std::chrono::milliseconds silence_{0};
  Time lastLook_ = {}, lastBeat_ = {};
  std::vector<Other> others_;  // [node] this one included
};

}  // namespace muster
