#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/core/nn/training_state.h"
#include "muster/parallel/training/arrival_order.h"

namespace muster {

/// What a worker brings to the end of a round.
struct Contribution {
  double scoreSum = 0;          ///< of the worker's steps since its last merge, each times its weight
  double weight = 0;            ///< sum of those steps' loss normalisers
  double plainScoreSum = 0;     ///< of those steps, without weights
  std::int64_t batches = 0;     ///< of those steps
  std::int64_t examples = 0;    ///< of those steps
  std::int64_t iteration = 0;   ///< iterations finished after the last of them
  double largest = 0;           ///< largest magnitude in the replica, if it was checked
  bool ended = false;           ///< the worker has had its last batch of the epoch
  bool late = false;            ///< the last step's score is not read yet: the sums of scores lack it
  std::int64_t untrained = -1;  ///< the batch that was taken but not trained because of a stop; -1: none
};

/// The landings of one `fit()` in which workers arrive one after another: the order of the landings, and the
/// workers that each one merges. When a worker that should arrive has no batch left, the epoch ends: the
/// last landing merges all workers that have trained. A value.
class Arrivals {
 public:
  Arrivals(const ArrivalPlan& plan, const Schedule& learningRate);
  bool onWallClock() const { return order_.plan().wallClock; }
  /// Restart a copy of it to deal batches on the virtual clock. Thread-safe.
  const ArrivalOrder& order() const { return order_; }

  /// Begins an epoch after this many iterations and epochs.
  /// @param landings  of the epoch that were carried out before the training was resumed.
  void beginEpoch(std::int64_t iteration, std::int64_t epoch, std::int64_t landings = 0);
  /// Plans the next landing. Call it between rounds.
  void planNext();
  /// On the wall clock: a worker has arrived.
  void arrive(int worker) {
    order_.arrive(worker);
    order_.landArrived();
  }
  /// Whether the worker has arrived once it has trained this many batches since its last departure.
  bool hasArrived(int worker, std::int64_t batches) const {
    return order_.runs(worker) && !ending_ && batches >= iterations(worker);
  }
  /// The worker's iterations from its last departure to its next arrival.
  std::int64_t iterations(int worker) const { return iterations_[static_cast<std::size_t>(worker)]; }
  /// The worker's iterations until the next landing, or an upper bound: without limit once a worker has run
  /// out of batches. @param batches  that the worker has trained and that are not merged.
  std::int64_t untilLanding(int worker, std::int64_t batches) const;
  /// Sets the workers that a round's end merges.
  /// @param last  the epoch or the run ends: merges all workers that have trained.
  /// @param met  all workers wait; otherwise one worker has arrived alone.
  void chooseLanding(std::span<const Contribution> contributions, bool last, bool met);

  /// The workers that are merged, [worker]. After `chooseLanding`, until the next one.
  std::span<const Arrival> landing() const { return landing_; }
  /// The workers that arrive at the next landing, without staleness, [worker].
  std::span<const Arrival> next() const { return order_.arrivals(); }
  /// Landings carried out in the epoch.
  std::int64_t landings() const { return landings_; }

 private:
  void countLanding(std::span<const Arrival> landing);

  ArrivalOrder order_;                    // on the virtual clock it has planned the next landing
  std::vector<Arrival> landing_;          // [worker]
  std::vector<std::int64_t> resumedAt_;   // [worker] landings before its last departure
  std::vector<std::int64_t> due_;         // [worker] batches dealt from its last landing to the next one
  std::vector<std::int64_t> iterations_;  // [worker]
  std::int64_t landings_ = 0;
  bool ending_ = false;  // a worker that should arrive has ended: all train the rest of the epoch
};

/// The position in an epoch that was at `begun` once worker w has trained the first counts[w] untrained
/// batches that `order` deals to it.
EpochPosition afterDealing(const EpochPosition& begun, ArrivalOrder order, std::vector<std::int64_t> counts);
/// The position once the first `taken` untrained batches are trained, except those with the numbers
/// `untrained`.
EpochPosition afterTaking(const EpochPosition& begun, std::int64_t taken,
                          std::span<const std::int64_t> untrained);

}  // namespace muster
