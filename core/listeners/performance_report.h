#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "muster/core/nn/listener.h"

namespace muster {

/// The speed of a training, and how its workers spent their time.
struct PerformanceReport {
  /// Shares of the time in `WorkerTimes`; they add up to 1, or are all 0 if there is no time. The time of
  /// listeners, with their tests, is in none of them.
  struct Shares {
    double computing = 0, waitingForData = 0;
    /// At the ends of rounds: for other workers, and until the coordinator's thread and this one wake up.
    double waitingForWorkers = 0;
    double merging = 0;
  };

  double seconds = 0;                ///< wall time
  std::vector<WorkerTimes> workers;  ///< [worker] of this process
  std::int64_t elsewhere = 0;        ///< examples that other nodes trained

  std::int64_t batches() const;
  std::int64_t examples() const;
  /// All workers together, also those of other nodes; 0 if no time has passed.
  double samplesPerSecond() const;
  double samplesPerSecond(const WorkerTimes& worker) const;
  /// Shares of the time of all workers together.
  Shares shares() const;
  static Shares shares(const WorkerTimes& worker);

  /// A line for each worker, and one for all; with other nodes, one for those here and one for all.
  std::string table() const;
  /// For example `8612 samples/s`; with other nodes, `17224 samples/s on all nodes`.
  std::string speed() const;
  /// For example `8612 samples/s; computing 97.1 %, waiting for data 0.8 %, synchronising 1.2 %, merging 0.9
  /// %`, where synchronising is `waitingForWorkers`; with other nodes, `17224 samples/s on all nodes; here
  /// computing` and so on. Without a batch there are no shares.
  std::string line() const;
};

/// The work between two readings of the workers' times. `before` may be empty.
PerformanceReport performanceBetween(const std::vector<WorkerTimes>& before, std::vector<WorkerTimes> after,
                                     std::chrono::nanoseconds wall);

}  // namespace muster
