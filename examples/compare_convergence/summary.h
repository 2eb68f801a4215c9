#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/compare_convergence/grid.h"
#include "examples/compare_convergence/link_model.h"
#include "examples/compare_convergence/run_record.h"
#include "examples/support/number_text.h"

namespace convergence {

/// The first test at which an arm had the target accuracy.
struct Target {
  std::size_t reached = 0;           ///< seeds that did
  example::Spread seconds, samples;  ///< over those seeds
  WorkerCost cost;                   ///< until then, means over those seeds
};

/// What an arm came to over its finished seeds. A seed that failed counts in `failures` and nowhere else.
struct ArmSummary {
  Arm arm;
  std::string name;
  std::size_t runs = 0;      ///< finished
  std::size_t failures = 0;  ///< of them
  example::Spread finalAccuracy;
  double worstAccuracy = 0, bestAccuracy = 0;  ///< at the end, over the seeds
  Target target;
  /// Seconds to the target of the synchronous arm with the same workers, batch, updater and learning rate, by
  /// this arm's, seed by seed. Of no seed where one of the arms did not reach it with every seed.
  example::Spread speedUp;
  example::Spread seconds;   ///< of the whole training
  example::Spread bytes;     ///< that one worker contributed
  example::Spread distance;  ///< mean over each run's points
  WorkerCost cost;           ///< means over the seeds
  bool oversubscribed = false;
  double samples = 0;  ///< of a whole run, all workers; 0 if none is finished

  /// Whether all seeds that were trained reached the target.
  bool reachesTarget() const { return runs > 0 && target.reached == runs; }
};

/// Samples that all workers of a projection train in a second, each as many as a worker of the arm did.
double samplesPerSecond(const ArmSummary& arm, const Projection& projection);

/// The arms of `grid` in its order, from those of `runs` that are finished.
std::vector<ArmSummary> summarise(const Grid& grid, const std::vector<RunRecord>& runs,
                                  double targetAccuracy);

}  // namespace convergence
