#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "muster/core/tensor/tensor.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/nodes/node_messages.h"

namespace muster {

/// What a local participant sends to the corresponding participants of the other nodes in addition to its
/// means: numbers that are added up, parts of replicas, messages. All of them make the same calls. Used by
/// one thread.
class NodeChannel {
 public:
  /// @param channel  of NodeReduction, which is used between calls only.
  NodeChannel(NodeLink& link, int channel)
      : link_(link), messages_(link, channel), bodies_(static_cast<std::size_t>(link.nodes())) {}

  /// Replaces the values by their sums over the nodes, in their order. Allocates only for more values than in
  /// earlier calls.
  void sum(std::span<double> values);
  /// Copies `values` of node `from` to `into` of node `to`. The other nodes do nothing.
  void copy(const Tensor& values, int from, int to, const Tensor& into);
  /// See MergeOps::allGather. @param local  this participant is number local * nodes + node.
  void allGather(int local, Messages& messages);

 private:
  NodeLink& link_;
  NodeMessages messages_;
  std::vector<double> numbers_;               // [node][value]
  std::vector<std::span<std::byte>> bodies_;  // [node] of the messages in transfer
};

}  // namespace muster
