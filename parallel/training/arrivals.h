#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "muster/core/nn/training_state.h"
#include "muster/parallel/training/arrival_order.h"
#include "muster/parallel/training/contribution.h"
#include "muster/parallel/training/wall_clock_order.h"

namespace muster {

/// The landings of one `fit()`, where workers arrive one after another: the order of the landings, and the
/// workers that each one merges. At an epoch's end, when a worker that should arrive has no batch left, the
/// last landing merges all workers that have trained.
class Arrivals {
 public:
  Arrivals(const ArrivalPlan& plan, const Schedule& learningRate);
  bool onWallClock() const { return clock_.has_value(); }
  /// An order to deal by, as this one was made: of the virtual clock. Thread-safe.
  ArrivalOrder newOrder() const { return ArrivalOrder(plan_, learningRate_); }

  /// After so many iterations and epochs. @param landings  of it that were carried out, before the training
  ///                                                        was resumed.
  void beginEpoch(std::int64_t iteration, std::int64_t epoch, std::int64_t landings = 0);
  /// The next landing. Between rounds.
  void planNext();
  /// On the wall clock: a worker has arrived.
  void arrive(int worker) { clock_->arrive(worker); }
  /// Whether the worker has arrived with so many batches since it went on.
  bool hasArrived(int worker, std::int64_t batches) const {
    return clock_->runs(worker) && !ending_ && batches >= iterations(worker);
  }
  /// The worker's iterations between when it went on last and its next arrival.
  std::int64_t iterations(int worker) const { return iterations_[static_cast<std::size_t>(worker)]; }
  /// Its iterations until the next landing, or the most that they can be: more than there are batches for a
  /// worker whose epoch has ended. @param batches  that it has trained and that are not merged.
  std::int64_t untilLanding(int worker, std::int64_t batches) const;
  /// Who is merged at the end of a round. @param last  of the epoch, or of the run: all who have trained.
  /// @param met  all workers are at the barrier; otherwise one has arrived by itself.
  void settle(std::span<const Contribution> contributions, bool last, bool met);

  /// Who is merged, [worker]. After `settle`, until the next one.
  std::span<const Arrival> landing() const { return landing_; }
  /// Who arrives at the next landing, without staleness, [worker].
  std::span<const Arrival> next() const { return clock_ ? clock_->arrivals() : order_.arrivals(); }
  /// Carried out in the epoch.
  std::int64_t landings() const { return landings_; }

 private:
  void depart(int worker, std::int64_t iteration);
  void countLanding(std::span<const Arrival> landing);

  const ArrivalPlan plan_;
  const Schedule learningRate_;
  ArrivalOrder order_;                     // of the virtual clock
  std::optional<WallClockOrder> clock_;    // in its place
  std::vector<Arrival> landing_;           // [worker]
  std::vector<std::int64_t> wentOn_;       // [worker] after so many landings
  std::vector<std::int64_t> due_;          // [worker] dealt since its last landing, by the next one
  std::vector<std::int64_t> iterations_;   // [worker]
  std::int64_t epoch_ = 0, landings_ = 0;  // the epoch's
  bool ending_ = false;  // a worker that should arrive has ended: all train what is left of the epoch
};

/// The batches of an epoch that are trained once worker w has trained the first counts[w] that `order` deals
/// it of those that were not.
EpochPosition afterDealing(const EpochPosition& begun, ArrivalOrder order, std::vector<std::int64_t> counts);
/// The same, once the first `taken` batches of those that were not are trained but for some of them, by
/// number.
EpochPosition afterTaking(const EpochPosition& begun, std::int64_t taken,
                          std::span<const std::int64_t> untrained);

}  // namespace muster
