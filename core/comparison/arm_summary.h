#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/core/comparison/network_link.h"
#include "muster/core/comparison/run_record.h"
#include "muster/core/comparison/sample_mean.h"

namespace muster {

/// The score that arms are compared by, as it is shown.
struct ComparisonMetric {
  std::string name = "accuracy";  ///< for display
  double factor = 100;            ///< from the recorded score to the one shown
  int decimals = 2;
  std::string unit = " %";         ///< of a score
  std::string points = " points";  ///< of a difference

  /// @param name  accuracy or r2
  static ComparisonMetric named(const std::string& name);
  /// A recorded score as it is shown, as in "97.5 %".
  std::string text(double score) const;
};

/// The first test at which an arm reached the target.
struct TargetReached {
  std::size_t reached = 0;      ///< seeds that reached the target
  SampleMean seconds, samples;  ///< over those seeds
  WorkerCost cost;              ///< up to that test, means over those seeds
};

/// Which of an arm's runs that came to their end have hardly learnt.
struct Guesses {
  std::size_t judged = 0;  ///< of how many it is known whether they learnt (RunRecord::judged)
  std::size_t count = 0;   ///< how many of these were hardly better than one answer for all examples
  std::string first;       ///< RunRecord::guess of the first of them
};

/// An arm's results over its finished seeds. A failed seed counts only in `runs` and `failures`.
struct ArmSummary {
  std::string name;
  std::size_t runs = 0;      ///< finished
  std::size_t failures = 0;  ///< how many of the runs
  std::string failure;       ///< why the first of them ended
  Guesses guesses;           ///< of the others
  SampleMean score;          ///< at the end
  SampleMean difference;     ///< of the score to the baseline's, seed by seed; count 0: the baseline
  SampleMean recomputed;     ///< the score with recomputed statistics; count 0: not measured
  TargetReached target;
  /// Natural logarithms of the seconds to the target of the baseline divided by this arm's, seed by seed; NaN
  /// if one of the two has not reached it.
  SampleMean logSpeedUp;
  SampleMean seconds, bytes, distance, iterations;  ///< of the whole training; bytes of one worker
  WorkerCost cost;                                  ///< means over the seeds
  std::int64_t workers = 1;
  bool summed = true;                           ///< RunRecord::summed of all runs
  bool oversubscribed = false, loaded = false;  ///< RunRecord's, of any run
  double samples = 0;                           ///< of a whole run by all workers

  bool trained() const { return score.count > 0; }
  /// Whether most of its runs that were judged are hardly better than one answer for all examples.
  bool guessed() const { return 2 * guesses.count > guesses.judged; }
  /// Whether it has runs and none of them came to an end.
  bool diverged() const { return runs > 0 && failures == runs; }
  /// The geometric mean over the seeds; NaN where `logSpeedUp` has none.
  double speedUp() const;
};

/// Samples per second of all workers of a projection, each training as many as a worker of the arm did.
double samplesPerSecond(const ArmSummary& arm, const LinkProjection& projection);

/// The highest score, rounded down to three decimals, that more than half of the arms reach with every seed;
/// so an arm with a failed run does not lower it. NaN, no target, if no arm has runs without a failed one.
/// @param runs  [arm][finished seed].
double chooseTarget(std::span<const std::vector<RunRecord>> runs);

/// The results of an arm.
/// @param runs  one for each finished seed.  @param target  a score, as it is recorded; NaN: none.
ArmSummary summariseArm(std::string name, std::span<const RunRecord> runs, double target);
/// Fills `difference` and `logSpeedUp`: over the seeds with a finished run of both.
void compareWith(std::span<const RunRecord> baseline, std::span<const RunRecord> runs, double target,
                 ArmSummary& summary);

}  // namespace muster
