#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "muster/core/nn/listener.h"

namespace muster {

/// How fast a training was and where its workers' time went.
struct PerformanceReport {
  /// Shares of the time that `WorkerTimes` account for; they add up to 1, or are all 0 where there is none.
  struct Shares {
    double computing = 0, waitingForData = 0, waitingForWorkers = 0, merging = 0;
  };

  double seconds = 0;                ///< of wall time
  std::vector<WorkerTimes> workers;  ///< [worker]

  std::int64_t batches() const;
  std::int64_t examples() const;
  /// All workers together; 0 where no time has passed.
  double samplesPerSecond() const;
  double samplesPerSecond(const WorkerTimes& worker) const;
  /// Of all workers' time together.
  Shares shares() const;
  static Shares shares(const WorkerTimes& worker);

  /// A line for each worker and one for all, for people.
  std::string table() const;
  /// As in `8612 samples/s; computing 97.1 %, waiting for data 0.8 %, for workers 1.2 %, merging 0.9 %`.
  std::string line() const;
};

/// What the workers did between two readings of their times. `before` may be empty.
PerformanceReport performanceBetween(const std::vector<WorkerTimes>& before, std::vector<WorkerTimes> after,
                                     std::chrono::nanoseconds wall);

}  // namespace muster
