#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/nodes/node_link.h"

namespace muster {

/// One local participant's part in merging means and variances over nodes (rule Moments). Worker l of node n
/// is worker l * N + n. They are few, so each node sends those of all its workers to every other node, which
/// computes the merged ones as one process would. Used by one thread.
class NodeMoments {
 public:
  /// @param local  workers of each node.  @param channel  for the corresponding participants of all nodes.
  NodeMoments(NodeLink& link, int local, int channel);

  /// Writes the merged means and variances into the replicas of this node and into the merged copy, if there
  /// is one.
  /// @param own  this participant's means.
  void run(const SharedBlock& block, std::span<const double> weights, Slice own, Context& context);

 private:
  /// Fills `replicas_` with the piece of all workers.
  void exchange(const SharedBlock& block, Slice piece);

  NodeLink& link_;
  const int local_, channel_;
  std::vector<std::size_t> here_;  // this node's workers
  NodeCall call_;
  Tensor mirrors_;                // float64 [worker][2][means at a time]
  std::vector<Tensor> replicas_;  // [worker] views of mirrors_, of the block's type
};

}  // namespace muster
