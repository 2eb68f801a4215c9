#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/compare_convergence/grid.h"
#include "muster/core/base/fields.h"

namespace convergence {

/// The merged model at some point of a run, and its costs up to there.
struct Point {
  std::int64_t samples = 0;     ///< trained, by all workers together
  std::int64_t iterations = 0;  ///< per worker
  std::int64_t rounds = 0;      ///< exchanges so far; 0 for one worker
  double seconds = 0;           ///< of training, without the tests
  std::int64_t bytes = 0;       ///< contributed to the exchanges by one worker
  double trainingLoss = 0;  ///< of the replicas during training, mean over the samples since the last point
  double testLoss = 0;      ///< of the merged model
  double testAccuracy = 0;  ///< of the merged model, from 0 to 1
  double distance = 0;      ///< of the replicas from their mean, mean over the merges since the last point
  std::int64_t resynchronisations = 0;      ///< how many of the rounds resynchronised shared gradients
  std::int64_t resynchronisationBytes = 0;  ///< how many of the bytes they took

  bool operator==(const Point&) const = default;
  void fields(muster::Fields& f);
};

/// One arm trained with one seed.
struct RunRecord {
  Arm arm;
  std::int64_t seed = 0;
  std::vector<Point> points;
  double computeSeconds = 0;  ///< mean over the workers
  std::int64_t cores = 0;     ///< available to this program
  /// The test accuracy at the end once recomputeStatistics() has run over the training images; below 0 for a
  /// network without running statistics.
  double recomputedAccuracy = -1;
  std::string failure = {};  ///< why it ended early (its loss was NaN or infinite); empty: it did not

  bool failed() const { return !failure.empty(); }
  /// Whether workers shared cores: the wall time is then longer than with one core per worker.
  bool oversubscribed() const { return arm.workers > cores; }
};

/// Writes JSON on one line; `runFromJson` reads it.
std::string toJson(const RunRecord& run);
/// @throws InvalidArgument naming the field that is missing or wrong.
RunRecord runFromJson(std::string_view json);

}  // namespace convergence
