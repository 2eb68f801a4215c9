#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "examples/compare_convergence/run_record.h"
#include "muster/core/listeners/every.h"
#include "muster/core/nn/listener.h"

namespace convergence {

/// One exchange, as the CSV file of a run's merges has it.
struct Merge {
  std::int64_t samples = 0;        ///< trained before it, by all workers
  std::int64_t iterations = 0;     ///< of each worker
  double seconds = 0;              ///< of training, without the tests
  double loss = 0;                 ///< mean over the samples since the merge before
  double distance = 0;             ///< of the replicas from their mean, just before; with averaging
  std::int64_t bytes = 0;          ///< that one worker contributed
  bool resynchronisation = false;  ///< of shared gradients
  double drift = 0;                ///< what a resynchronisation found withheld, relative to the parameters
};

struct TestResult {
  double accuracy = 0;  ///< share of the images whose class was predicted
  double loss = 0;      ///< mean of -log p(class)
};

struct RecorderOptions {
  std::int64_t testEvery = 6000;  ///< samples
  std::int64_t samples = 0;       ///< of the whole run: tested at its end
  /// Whether the replicas are apart before a merge. Shared gradients call their drift the divergence, which
  /// is no distance of replicas.
  bool apart = true;
  std::function<TestResult(muster::Model&)> test = {};
  std::function<void(std::int64_t samples)> progress = {};  ///< called after each merge; may be empty
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Writes down how a training goes, and tests the merged model at the first merge at or after each multiple
/// of `testEvery` samples. Its clock stands still while it does so.
class Recorder final : public muster::Listener {
 public:
  explicit Recorder(RecorderOptions options);

  void onEpochStart(const muster::EpochEvent& event) override;
  void onMerge(const muster::MergeEvent& event) override;
  void onFitEnd(muster::Trainer& trainer) override;

  const std::vector<Point>& points() const { return points_; }
  /// Exchanges between several workers; none of a single one.
  const std::vector<Merge>& merges() const { return merges_; }
  /// Mean over the workers, of the `fit()` that has ended.
  double computeSeconds() const { return computeSeconds_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Counts a merge of several workers.
  void noteMerge(const muster::MergeEvent& event);
  void testNow(muster::Trainer& trainer);
  /// Sums up what there was since the last point.
  void closeInterval();

  RecorderOptions options_;
  muster::Every every_;
  std::vector<Point> points_;
  std::vector<Merge> merges_;
  Point now_;                   // counted so far
  double lossSum_ = 0;          // since the last point, each score times its samples
  std::size_t mergesThen_ = 0;  // at the last point
  Clock::time_point since_;     // the clock runs
  double computeSeconds_ = 0;
};

}  // namespace convergence
