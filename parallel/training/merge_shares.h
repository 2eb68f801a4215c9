#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "muster/parallel/runtime/activity.h"
#include "muster/parallel/runtime/time_sheet.h"
#include "muster/parallel/strategies/strategy.h"
#include "muster/parallel/training/ledger.h"

namespace muster {

/// A worker at the end of a round.
struct Participant {
  int worker = 0;
  Exchange& exchange;
  Context& context;
  TimeSheet& times;
  Activity& activity;

  // See Exchange.
  void arriveAtExchange() const { exchange.arrive(worker, context); }
  void enqueueAfterMerge() const { exchange.enqueueAfter(worker, context); }
};

/// The workers' shares of the merges of one `fit()`: calls the strategy on the workers' threads, and knows
/// what the last merge took and whether it has failed.
class MergeShares {
 public:
  /// @param workers  of all nodes. @param undo  of the exchange; null if nothing is merged.
  /// @param undoesMerges  it can undo a merge of numbers that overflow.
  MergeShares(Strategy& strategy, const StrategyTraits& traits, int workers, MergeUndo* undo,
              bool undoesMerges)
      : strategy_(strategy),
        traits_(traits),
        undo_(undo),
        undoesMerges_(undoesMerges),
        shares_(static_cast<std::size_t>(workers)) {}

  LocalWork localWork() const { return traits_.localWork; }
  /// Whether workers must report the largest magnitude in their replicas.
  bool looksAtReplicas() const { return undoesMerges_ && traits_.extrapolates; }
  /// Whether a round may be merged before the scores of its last steps are read.
  bool mergesBeforeScores(const Exchange& exchange) const {
    return !traits_.arrivals && localWork() == LocalWork::Step && traits_.mergesBeforeScores &&
           exchange.topology().guardsMerges;
  }

  // A worker's share, in this order. What throws after `contribute` has lost the merge.

  /// Prepares the contribution of a worker that has trained.
  void contribute(const Participant& me, double weight);
  void merge(const Participant& me, const Decision& decision);
  /// With gradients, once all have merged. Before the worker updates its replica.
  void afterReduction(const Participant& me, const Decision& decision);
  /// The worker has updated its replica. @param penalty  of the update, the same for all workers.
  void setUpdated(int worker, double penalty) { shares_[static_cast<std::size_t>(worker)].penalty = penalty; }
  /// One worker merges the shares of all, while others train.
  void mergeAll(const Participant& me, const Decision& decision);

  // Between two merges, called by one worker while no other is in a merge.

  /// Before a merge, while the worker waits: copies its part of the merged copies, if every merge is kept.
  void keep(int worker) { undo_->keep(worker); }
  /// Copies the merged copies before a merge that may fail, unless workers have done so.
  /// @param largest  magnitude in the replicas. @param alone  workers arrive one at a time.
  void keepLast(double largest, bool alone);
  /// A round's end was decided.
  void begin() {
    for (Share& share : shares_) share.penalty.reset();
  }

  // Figures of the last merge, while no worker is in one.

  /// The time of the worker that took longest.
  std::chrono::nanoseconds time() const;
  /// Bytes that a contributor had to send, on average.
  std::int64_t bytes() const;
  /// The penalty of the updates; 0: no worker has updated its replica.
  double penalty() const;

  // Failures.

  /// Call it if an update would give numbers that are not finite: all replicas are equal, so all refuse the
  /// update and none changes. Thread-safe.
  void refuseUpdate();
  /// The last merge was lost after its operations had returned.
  void lose() { loss_ = Loss::Merge; }
  /// Whether the last round cannot be committed.
  bool failed() const { return loss_ != Loss::None; }
  /// Whether a merge has failed: merged copies may hold a part of its result.
  bool mergeFailed() const { return loss_ == Loss::Merge; }
  /// Whether MergeUndo::rollBack undoes that merge.
  bool mergeKept() const { return mergeKept_; }
  /// Whether the worker's replica is ahead of the ledger: it was updated in a round whose merge has failed.
  bool ahead(int worker) const {
    return mergeFailed() && shares_[static_cast<std::size_t>(worker)].penalty.has_value();
  }

 private:
  enum class Loss { None, Merge, Update };
  struct Share {
    std::chrono::nanoseconds contributing{0}, merging{0};
    std::int64_t bytes = 0;
    std::optional<double> penalty;  // of its update; none: it has not updated its replica
  };
  Share& of(const Participant& me) { return shares_[static_cast<std::size_t>(me.worker)]; }
  template <typename Merge>
  void orLose(Merge merge);

  Strategy& strategy_;
  const StrategyTraits& traits_;
  MergeUndo* const undo_;
  const bool undoesMerges_;
  std::vector<Share> shares_;  // [worker] written by its worker until it waits for the others
  bool mergeKept_ = false;
  std::atomic<Loss> loss_{Loss::None};
};

}  // namespace muster
