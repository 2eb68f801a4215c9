#pragma once

#include <span>

#include "muster/parallel/exchange/vector_ops.h"

namespace muster {

/// A strategy's operations in one merge: those on vectors, and merges of state by the rules of its blocks.
class MergeOps : public VectorOps {
 public:
  using VectorOps::VectorOps;

  /// Replaces `block` in all replicas and merged copies by its merged value under the block's rule, weighted:
  /// one pass over the replicas. A merge of one contributor is a copy.
  /// @param weights  [worker], >= 0, not all 0.
  /// @param spread  unless null, receives how far the replicas were from their mean: this participant's share
  ///                of the sums (see `distance`). For blocks of rule Average; on devices this waits for the
  ///                result, and over nodes for all participants.
  void merge(const SharedBlock& block, std::span<const double> weights, Spread* spread = nullptr);
  /// Merges all state: every block except the gradients. @param spread  see `merge`, for the parameters.
  void mergeState(std::span<const double> weights, Spread* spread = nullptr);

  /// Merges all state except the parameters: for a strategy that merges the parameters itself.
  void mergeOthers(std::span<const double> weights);

  /// Moves the merged copy of `block` alone, by the block's rule: for Average it becomes
  /// keep * copy + (1 - keep) * mean of the replicas, for Moments the same mixture of distributions, for
  /// Reset 0. With Keep nothing happens.
  /// @param weights, keep  see `mean`.
  void mergeCopy(const SharedBlock& block, std::span<const double> weights, double keep);

  /// Replaces each replica of `block` by its own combination of all replicas, a row of `mixing`, and the
  /// merged copy by the weighted mean of the replicas. All are formed from the values before, in float64, in
  /// worker order, rounded once, on devices as on the host; the merged copy over several devices is formed as
  /// by `mean`. A replica without a row does not change; a row of one factor 1 is a copy. Rule Moments:
  /// factors are >= 0 and are the weights of a mixture of distributions. Rule Reset: replicas that have a
  /// row, and the merged copy, become 0. Rule Keep: nothing happens. A row has at most 40 replicas on a GPU
  /// (Moments: 32).
  void mix(const SharedBlock& block, const Mixing& mixing);
  /// Mixes all state: every block except the gradients.
  void mixState(const Mixing& mixing);
  /// Mixes the updater's state and the statistics.
  void mixOthers(const Mixing& mixing);

  /// For a rule that copies the merged copy of `block` to some replicas by itself: if the block is the
  /// updater's state and its rule Reset, the updaters of these workers start anew, their counts of updates
  /// included. The other operations do this themselves.
  /// @param isReset  `bool isReset(worker)`.
  template <typename F>
  void noteReset(const SharedBlock& block, F isReset) {
    if (block.rule != MergeRule::Reset || block.kind != BlockKind::UpdaterState) return;
    const auto own = static_cast<std::size_t>(participant_);
    const bool all = waiting_ == Waiting::NoSums;  // one thread may land for all workers
    if (all && own != 0) return;
    for (std::size_t w = all ? 0 : own; w < (all ? block.replicas.size() : own + 1); ++w)
      if (isReset(w)) resetUpdates(w);
  }

 private:
  void resetUpdates(std::size_t worker) const;
  /// For a block of rule Reset: sets the replicas of these workers to zero, and the merged copies, if wanted.
  template <typename F>
  void reset(const SharedBlock& block, F isReset, bool mergedCopies);
  void resetMergedCopies(const SharedBlock& block);
};

}  // namespace muster
