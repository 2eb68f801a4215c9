#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "muster/parallel/training/ledger.h"

namespace muster {

/// What a worker does next in a training. A value: other workers may end further rounds before it is read.
struct Order {
  enum class Do {
    Train,   ///< batches, up to `iterations`
    Merge,   ///< its share of the round's merge
    Update,  ///< with gradients: its replica, with what was merged
    Visit,   ///< call `visit`
    End      ///< the run is over, or was aborted
  };
  /// Finished, over the life of the model.
  struct Counters {
    std::int64_t iteration = 0, epoch = 0;
  };

  Do what = Do::End;
  std::int64_t iterations = 0;            ///< the worker's until the next round's end, or an upper bound
  bool merged = false;                    ///< the worker's contribution was merged
  bool epochOver = false;                 ///< a new epoch begins
  std::optional<Counters> counters = {};  ///< of the replica from now on; nothing: they stay
  /// Called with the worker's index on its node; must not throw.
  const std::function<void(int)>* visit = nullptr;
};

/// The plans of a run's rounds, as its strategy makes them, and what the strategy has reported about the last
/// round. Used by one thread at a time.
class RoundPlans {
 public:
  RoundPlans(Strategy& strategy, LocalWork work, Schedule learningRate)
      : strategy_(strategy), work_(work), learningRate_(std::move(learningRate)) {}

  /// Keeps the report about the round that has ended, and plans the next one.
  /// @throws InvalidArgument for an impossible plan.
  RoundPlan next(const Ledger& ledger);
  /// @throws SavedStateError for an impossible plan of a checkpoint.
  void requireSaved(const RoundPlan& plan) const;
  /// About the round before the planned one; valid until `next`.
  const MergeReport& report() const { return report_; }

 private:
  void requirePossible(const RoundPlan& plan) const;

  Strategy& strategy_;
  const LocalWork work_;
  const Schedule learningRate_;
  MergeReport report_;
  std::vector<MergeValue> values_;  // of the report
};

/// The next order of each worker of a run. Written while all workers wait, or by a worker for itself.
class RoundOrders {
 public:
  /// @param alone  workers do not wait for each other at landings.
  RoundOrders(std::size_t workers, bool alone) : alone_(alone), orders_(workers) {}
  const Order& of(int worker) const { return orders_[static_cast<std::size_t>(worker)]; }
  void giveAll(const Order& order) { std::ranges::fill(orders_, order); }
  /// The worker trains the next round.
  void train(int worker, const Ledger& ledger);
  /// All workers train the next round, or end. Replicas take the ledger's counters.
  void giveNext(Order::Do what, const Ledger& ledger);

 private:
  const bool alone_;
  std::vector<Order> orders_;  // [worker]
};

}  // namespace muster
