#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/base/fields.h"

namespace muster {

/// The merged model at some point of a run, and its costs up to there.
struct RunPoint {
  std::int64_t samples = 0;     ///< trained, by all workers together
  std::int64_t iterations = 0;  ///< per worker
  std::int64_t rounds = 0;      ///< merges so far; 0 for one worker
  double seconds = 0;           ///< of training, without the tests
  std::int64_t bytes = 0;       ///< contributed to the merges by one worker
  double trainingLoss = 0;  ///< of the replicas during training, mean over the samples since the last point
  double loss = 0;          ///< of the merged model on the data that `RunRecord::on` names
  double score = 0;         ///< likewise: accuracy from 0 to 1, or R2 of a regression
  double distance = 0;      ///< of the replicas from their mean, mean over the merges since the last point
  std::int64_t resynchronisations = 0;      ///< how many of the rounds resynchronised shared gradients
  std::int64_t resynchronisationBytes = 0;  ///< how many of the bytes they took

  bool operator==(const RunPoint&) const = default;
  /// Visits all of them, for toJson and runFromJson.
  void fields(Fields& f);
};

/// One arm of a comparison trained with one seed. A RunRecorder makes it.
struct RunRecord {
  std::string arm;                         ///< the name of the way to train
  std::vector<std::string> settings = {};  ///< what it sets, as in `workers=4`; for display and to find it
  std::int64_t seed = 0;
  std::string on = "test";          ///< the data of its scores: test, or validation of a tuning run
  std::string metric = "accuracy";  ///< what its scores are: accuracy or r2
  std::int64_t workers = 1;
  bool summed = true;  ///< whether messages can be added up on their way, as all but shared gradients
  std::vector<RunPoint> points = {};
  double computeSeconds = 0;  ///< mean over the workers
  std::int64_t cores = 0;     ///< available to this program
  std::int64_t threads = 1;   ///< of all workers
  /// Cores that other programs kept busy meanwhile, on average, and whether they took some of the threads'.
  double othersBusy = 0;
  bool loaded = false;
  /// The score at the end with recomputed statistics (`recomputeStatistics`); empty: not measured.
  std::vector<double> recomputed = {};
  /// If the test at its end was hardly better than one answer for all examples: guessRemark; else empty.
  std::string guess = {};
  bool judged = true;        ///< whether `guess` was looked for: not by an earlier version
  std::string failure = {};  ///< why it ended early (a loss was NaN or infinite); empty: it did not

  bool failed() const { return !failure.empty() || points.empty(); }
  /// The last test. Needs one: of a failed run there may be none.
  const RunPoint& end() const { return points.back(); }
  /// Whether threads shared cores: the wall time is then longer than with a core for each.
  bool oversubscribed() const { return threads > cores; }
};

/// Writes all but `metric` as JSON on one line; `runFromJson` reads it.
std::string toJson(const RunRecord& run);
/// @throws InvalidArgument naming the field that is missing or wrong.
RunRecord runFromJson(std::string_view json);

}  // namespace muster
