#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/core/nn/training_state.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/strategies/strategy_traits.h"
#include "muster/parallel/training/node_place.h"

namespace muster {

/// Blocks of the replicas that may differ from worker to worker after a merge: what a checkpoint holds of
/// them, for which other nodes are asked, and the means that the user's model gets. Used by the thread that
/// calls `fit()`, while no worker runs.
class WorkerBlocks {
 public:
  WorkerBlocks(Exchange& exchange, const NodePlace& place, const StrategyTraits& traits)
      : exchange_(exchange), place_(place), traits_(traits) {}

  /// Whether workers may hold state after a merge that other nodes lack.
  bool any() const;
  /// Whether a checkpoint over nodes would be wrong, because it does not collect replicas that differ
  /// although StrategyTraits::replicasDiffer denies it.
  bool differUnexpectedly() const;
  /// Adds what the user's model does not hold: each block's merged copy if its values differ from the
  /// model's, the replicas if theirs differ from the merged copy, and the mean of those that each worker
  /// keeps. Over nodes the others must answer.
  /// @param ofModel  [block] what the user's model was filled from.
  /// @param examples  [worker] the weights of the means; none: no mean is added.
  void save(TrainingState& state, std::span<const Tensor> ofModel,
            const std::vector<std::int64_t>& examples) const;
  /// Fills merged copies and replicas from `state`, once they hold the user's model.
  /// @param own  false: replicas take the merged copies, or the means.
  void take(const TrainingState& state, bool own) const;
  /// Fills the merged copy with the mean of a block that each worker keeps. A collective call of all nodes.
  /// @param examples  [worker] the weights. @param context  of the user's model.
  void takeMean(const SharedBlock& block, const std::vector<std::int64_t>& examples, Context& context) const;

 private:
  bool isCollected(const SharedBlock& block) const;

  Exchange& exchange_;
  const NodePlace place_;
  const StrategyTraits& traits_;
};

}  // namespace muster
