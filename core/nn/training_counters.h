#pragma once

#include <cstdint>

#include "muster/core/data/batch.h"
#include "muster/core/optim/state_block.h"

namespace muster::detail {

/// What a model has counted over all its trainings: iterations, epochs and updates. The numbers are a block
/// of the model's state, so they are copied and saved with it.
class TrainingCounters {
 public:
  TrainingCounters(const TrainingCounters&) = delete;
  TrainingCounters& operator=(const TrainingCounters&) = delete;

  /// Iterations (rounds) and epochs finished over all `fit()` calls. Schedules read them; files store them.
  std::int64_t iteration() const;
  std::int64_t epoch() const;
  /// A smaller iteration than before leaves `updates` as it was.
  void setCounters(std::int64_t iteration, std::int64_t epoch);
  /// Updates that the updater has made since its state was zero: Adam corrects its moments by this number.
  /// Normally `iteration`, and counts on with it; smaller if a strategy has reset the state
  /// (UpdaterState::Reset). Files store it.
  std::int64_t updates() const;
  /// Sets it for the state as it is now; 0 for a state that was set to zero.
  void setUpdates(std::int64_t count);
  /// The number of the update of this step, from 1: the stamp's, or `updates` counted to its iteration.
  std::int64_t updatesAt(const BatchStamp& stamp) const;

 protected:
  TrainingCounters();
  ~TrainingCounters() = default;

  StateBlock& counters() { return counters_; }

 private:
  StateBlock counters_;
};

}  // namespace muster::detail
