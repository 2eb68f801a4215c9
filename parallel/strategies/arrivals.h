#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace muster {

/// The state of a worker when it continues after an arrival.
struct Departure {
  int worker = 0;
  std::int64_t iteration = 0, epoch = 0;  ///< finished; an iteration is W batches dispatched
  double learningRate = 0;                ///< of the next step, by the schedule of the model's updater
};

/// Arrivals of workers that do not wait for each other: each trains some iterations, arrives, is merged,
/// takes the global parameters, and continues.
///
/// Time is virtual: a worker's iteration lasts 1 / speed. Batches go to the worker with the smallest (time,
/// worker), and arrivals have the same order, so the same plan gives the same bits however fast the threads
/// are. For real time see `wallClock`.
struct ArrivalPlan {
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

  std::vector<std::int64_t> iterations = {};  ///< [worker] between its arrivals, at least 1
  /// If iterations vary: those to the next arrival, at least 1, a function of the departure. Thread-safe.
  std::function<std::int64_t(const Departure&)> iterationsFrom = {};
  std::vector<double> speeds = {};  ///< [worker] iterations in a unit of virtual time, above 0
  /// Arrivals less than this time after the first one are merged together; infinity: those of all workers. 0:
  /// each by itself, also after a wait for `staleness` above 0, in the order of arrival.
  double grace = 0;
  /// A worker that has arrived c times continues when every other worker has arrived c - staleness times. 0:
  /// all workers wait for each other.
  std::int64_t staleness = kUnbounded;
  /// Arrivals are in real time, and the next batch goes to the worker that asks first, so a run cannot be
  /// repeated. Speeds and grace then have no effect.
  bool wallClock = false;
};

/// A worker's part in a landing, which merges some arrivals.
struct Arrival {
  bool arrives = false;  ///< what it has trained since its last arrival is merged in this landing
  bool resumes = false;  ///< takes the global parameters after the landing and continues
  /// Landings since it last took the global parameters, without this one.
  std::int64_t staleness = 0;
};

}  // namespace muster
