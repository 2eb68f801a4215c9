#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "examples/muster/compare/run_record.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/listeners/every.h"
#include "muster/core/nn/listener.h"

namespace comparing {

struct RecorderOptions {
  std::int64_t testEvery = 1000;  ///< samples
  std::function<muster::AnyEvaluation(muster::Trainer&)> test = {};
  std::function<void(std::int64_t samples)> progress = {};  ///< called after each merge; may be empty
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Records a training, and tests the merged model at the first merge at or after each multiple of `testEvery`
/// samples. The time of these tests is not counted.
class Recorder final : public muster::Listener {
 public:
  explicit Recorder(RecorderOptions options);

  bool readsDivergence() const override { return true; }
  void onEpochStart(const muster::EpochEvent& event) override;
  void onMerge(const muster::MergeEvent& event) override;
  void onFitEnd(muster::Trainer& trainer) override;
  /// After `fit()`: the test of the trained model, as early stopping has left it.
  void finish(const muster::AnyEvaluation& result);

  const std::vector<Point>& points() const { return points_; }
  /// The values of each merge by name, with its iteration, as a file of curves has them.
  const std::map<std::string, std::vector<std::pair<std::int64_t, double>>>& curves() const {
    return curves_;
  }
  /// Mean over the workers in the finished `fit()`.
  double computeSeconds() const { return computeSeconds_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Counts a merge of several workers.
  void noteMerge(const muster::MergeEvent& event);
  void addPoint(const muster::AnyEvaluation& result);
  void curve(const char* name, double value) { curves_[name].emplace_back(now_.iterations, value); }

  RecorderOptions options_;
  muster::Every every_;
  std::vector<Point> points_;
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> curves_;
  Point now_;                      // the counters so far
  double lossSum_ = 0;             // since the last point, scores weighted by samples
  std::vector<double> distances_;  // since the last point
  Clock::time_point since_;        // start of the time that is being measured
  double computeSeconds_ = 0;
};

}  // namespace comparing
