#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "examples/compare_convergence/run_record.h"
#include "muster/core/listeners/every.h"
#include "muster/core/nn/listener.h"

namespace convergence {

/// One merge of a run.
struct Merge {
  std::int64_t samples = 0;        ///< trained by all workers before this merge
  std::int64_t iterations = 0;     ///< per worker
  double seconds = 0;              ///< of training, without the tests
  double loss = 0;                 ///< mean over the samples since the previous merge
  double distance = 0;             ///< of the replicas from their mean just before the merge; averaging only
  std::int64_t bytes = 0;          ///< that one worker contributed
  bool resynchronisation = false;  ///< whether this merge resynchronised shared gradients
  double drift = 0;                ///< withheld updates at a resynchronisation, relative to the parameters
};

struct TestResult {
  double accuracy = 0;  ///< share of the images whose class was predicted
  double loss = 0;      ///< mean of -log p(class)
};

struct RecorderOptions {
  std::int64_t testEvery = 6000;  ///< samples
  std::int64_t samples = 0;       ///< of the whole run, whose end is tested
  /// Whether replicas differ before a merge. With shared gradients, MergeEvent::divergence is the drift and
  /// not a distance between replicas.
  bool apart = true;
  std::function<TestResult(muster::Model&)> test = {};
  std::function<void(std::int64_t samples)> progress = {};  ///< called after each merge; may be empty
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Records a training, and tests the merged model at the first merge at or after each multiple
/// of `testEvery` samples. The time of these tests is not counted.
class Recorder final : public muster::Listener {
 public:
  explicit Recorder(RecorderOptions options);

  void onEpochStart(const muster::EpochEvent& event) override;
  void onMerge(const muster::MergeEvent& event) override;
  void onFitEnd(muster::Trainer& trainer) override;

  const std::vector<Point>& points() const { return points_; }
  /// Merges of several workers; empty for a single worker.
  const std::vector<Merge>& merges() const { return merges_; }
  /// Mean over the workers in the finished `fit()`.
  double computeSeconds() const { return computeSeconds_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Counts a merge of several workers.
  void noteMerge(const muster::MergeEvent& event);
  void testNow(muster::Trainer& trainer);
  /// Computes the means since the last point.
  void closeInterval();

  RecorderOptions options_;
  muster::Every every_;
  std::vector<Point> points_;
  std::vector<Merge> merges_;
  Point now_;                   // the counters so far
  double lossSum_ = 0;          // since the last point, scores weighted by samples
  std::size_t mergesThen_ = 0;  // size of `merges_` at the last point
  Clock::time_point since_;     // start of the time that is being measured
  double computeSeconds_ = 0;
};

}  // namespace convergence
