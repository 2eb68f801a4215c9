#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/compare_convergence/grid.h"
#include "examples/compare_convergence/link_model.h"
#include "examples/compare_convergence/run_record.h"
#include "examples/support/number_text.h"

namespace convergence {

/// The first test at which an arm reached the target accuracy.
struct Target {
  std::size_t reached = 0;           ///< seeds that reached the target
  example::Spread seconds, samples;  ///< over those seeds
  WorkerCost cost;                   ///< up to that test, means over those seeds
};

/// An arm's results over its finished seeds. A failed seed counts only in `runs` and `failures`.
struct ArmSummary {
  Arm arm;
  std::string name;
  std::size_t runs = 0;      ///< finished
  std::size_t failures = 0;  ///< how many of the runs
  example::Spread finalAccuracy;
  double worstAccuracy = 0, bestAccuracy = 0;  ///< at the end, over the seeds
  Target target;
  /// Seconds to the target of the synchronous arm with the same workers, batch, updater and learning rate,
  /// divided by this arm's seconds, for each seed. Empty if one of both arms missed the target with any seed.
  example::Spread speedUp;
  example::Spread seconds;   ///< of the whole training
  example::Spread bytes;     ///< contributed by one worker
  example::Spread distance;  ///< mean over each run's points
  WorkerCost cost;           ///< means over the seeds
  bool oversubscribed = false;
  double samples = 0;  ///< of a whole run by all workers; 0 if no run is finished

  /// Whether the target was reached with all trained seeds.
  bool reachesTarget() const { return runs > 0 && target.reached == runs; }
};

/// Samples per second of all workers of a projection, each training as many as a worker of the arm did.
double samplesPerSecond(const ArmSummary& arm, const Projection& projection);

/// Summarises the finished runs of each arm, in the order of `grid`.
std::vector<ArmSummary> summarise(const Grid& grid, const std::vector<RunRecord>& runs,
                                  double targetAccuracy);

}  // namespace convergence
