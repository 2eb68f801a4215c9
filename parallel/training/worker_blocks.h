#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/strategies/strategy_traits.h"
#include "muster/parallel/training/node_place.h"
#include "muster/parallel/training/resumption.h"

namespace muster {

/// Blocks that may differ from worker to worker after a merge: what a checkpoint over nodes gathers, and the
/// means that the user's model gets. Used by the thread that calls `fit()`, while no worker runs.
class WorkerBlocks {
 public:
  WorkerBlocks(Exchange& exchange, const NodePlace& place, const StrategyTraits& traits)
      : exchange_(exchange), place_(place), traits_(traits) {}

  /// Whether workers may hold state after a merge that other nodes lack.
  bool any() const;
  /// Whether a checkpoint over nodes would be wrong, because it does not collect replicas that differ
  /// although StrategyTraits::replicasDiffer denies it.
  bool differUnexpectedly() const;
  /// The block's replicas on all nodes, if they are gathered, and their mean if each worker keeps its own.
  /// Over nodes the others must answer. @param examples  [worker] of all nodes, the weights of the mean.
  CollectedBlock collect(const SharedBlock& block, std::span<const std::int64_t> examples) const;
  /// Fills the merged copy with the mean of a block that each worker keeps. A collective call of all nodes.
  /// @param examples  [worker] trained by this node's workers, the weights.
  /// @param context  of the user's model.
  void takeMean(const SharedBlock& block, std::vector<std::int64_t> examples, Context& context) const;

 private:
  bool isCollected(const SharedBlock& block) const;
  std::vector<std::int64_t> ofAllNodes(std::vector<std::int64_t> own) const;

  Exchange& exchange_;
  const NodePlace place_;
  const StrategyTraits& traits_;
};

}  // namespace muster
