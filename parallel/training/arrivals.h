#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/parallel/training/arrival_order.h"
#include "muster/parallel/training/contribution.h"

namespace muster {

/// The landings of one `fit()`, where workers arrive one after another: the order of the landings, and the
/// workers that each one merges. At an epoch's end, when a worker that should arrive has no batch left, the
/// last landing merges all workers that have trained.
class Arrivals {
 public:
  explicit Arrivals(const ArrivalPlan& plan);
  const ArrivalPlan& plan() const { return order_.plan(); }

  void beginEpoch();
  /// The next landing. Between rounds.
  void planNext();
  /// The worker's iterations until then.
  std::int64_t iterations(int worker) const;
  /// Who is merged at the end of a round. @param last  of the epoch, or of the run: all who have trained.
  void settle(std::span<const Contribution> contributions, bool last);

  /// Who is merged, [worker]. After `settle`, until the next one.
  std::span<const Arrival> landing() const { return landing_; }
  /// Who arrives at the next landing, without staleness, [worker].
  std::span<const Arrival> next() const { return order_.arrivals(); }

 private:
  ArrivalOrder order_;
  std::vector<Arrival> landing_;      // [worker]
  std::vector<std::int64_t> wentOn_;  // [worker] after so many landings
  std::int64_t landings_ = 0;         // in the epoch
  bool ending_ = false;  // a worker that should arrive has ended: all train what is left of the epoch
};

}  // namespace muster
