#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "muster/core/tensor/tensor.h"
#include "muster/parallel/exchange/node_group.h"
#include "muster/parallel/nodes/node_link.h"

namespace muster {

/// Sends bytes from each node to others, in pieces, so that heartbeats get through on a slow link. All nodes
/// make the same calls, each of which waits until all its messages are done. Used by one thread at a time.
class NodeMessages {
 public:
  /// @param channel  used by nothing else at the same time.
  /// @param underWay  pieces to or from each node that are in transfer at a time.
  NodeMessages(NodeLink& link, int channel, std::size_t underWay = 2);

  /// Each node sends the same number of bytes.
  /// @param own  what this node sends.
  /// @param all  [node] receives what each node sends; may be empty if this node takes nothing. The part of
  ///             this node is not written.
  /// @param sends, takes  `bool (int node)`: whether that node sends or takes.
  template <typename Sends, typename Takes>
  void run(std::span<const std::byte> own, std::span<std::byte> all, Sends sends, Takes takes) {
    exchange(
        own,
        [&](int n) {
          return takes(link_.node()) && sends(n)
                     ? all.subspan(static_cast<std::size_t>(n) * own.size(), own.size())
                     : std::span<std::byte>();
        },
        [&](int n) { return sends(link_.node()) && takes(n); });
  }

  /// @param own  what this node sends.
  /// @param from  `std::span<std::byte> (int node)`: receives what that node sends to this one, of that size.
  /// @param to  `bool (int node)`: whether this node sends `own` to that one.
  template <typename From, typename To>
  void exchange(std::span<const std::byte> own, From from, To to) {
    std::size_t longest = own.size();
    for (int n = 0; n < link_.nodes(); ++n)
      if (n != link_.node()) longest = std::max(longest, from(n).size());
    const auto pieceOf = [](auto bytes, std::size_t at) {
      return at < bytes.size() ? bytes.subspan(at, std::min(kPiece, bytes.size() - at)) : decltype(bytes)();
    };
    std::size_t pieces = 0;
    for (std::size_t at = 0; at < longest; at += kPiece, ++pieces) {
      NodeCall& call = calls_[pieces % calls_.size()];
      if (pieces >= calls_.size()) link_.wait(call);
      call.clear();
      for (int n = 0; n < link_.nodes(); ++n) {
        if (n == link_.node()) continue;
        call.receive(n, channel_, pieceOf(from(n), at));
        if (to(n)) call.send(n, channel_, pieceOf(own, at));
      }
      link_.begin(call);
    }
    for (std::size_t i = std::min(pieces, calls_.size()); i > 0; --i)
      link_.wait(calls_[(pieces - i) % calls_.size()]);
  }

  /// Replaces the values by their sums over the nodes, in their order. Allocates only for more values than in
  /// earlier calls.
  void sum(std::span<double> values);
  /// Copies `values` of node `from` to `into` of node `to`. The other nodes do nothing.
  void copy(const Tensor& values, int from, int to, const Tensor& into);
  /// See MergeOps::allGather, for the participants with the same number on their nodes.
  /// @param local  this participant is number local * nodes + node.
  void allGather(int local, Messages& messages);

 private:
  static constexpr std::size_t kPiece = 1 << 16;

  NodeLink& link_;
  const int channel_;
  std::vector<NodeCall> calls_;
  std::vector<double> numbers_;               // [node][value] of `sum`
  std::vector<std::span<std::byte>> bodies_;  // [node] of the messages in transfer
};

}  // namespace muster
