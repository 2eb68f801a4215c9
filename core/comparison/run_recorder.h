#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/comparison/run_record.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/listeners/every.h"
#include "muster/core/nn/listener.h"

namespace muster {
namespace detail {
class OthersLoad;
}

/// Which training is recorded, and when it is tested.
struct RunRecorderOptions {
  std::string arm;                         ///< name of the way to train
  std::vector<std::string> settings = {};  ///< what it sets, for the report, as in `every=10`
  std::int64_t seed = 0;                   ///< of the first weights and of the order of the examples
  std::string on = "test";                 ///< what `test` is: test or validation
  std::int64_t testEvery = 0;              ///< samples between tests; 0: only at the end
  std::int64_t threadsPerWorker = 1;       ///< as the training has them
  std::vector<float> classWeights = {};    ///< likewise, for RunRecord::guess; empty: 1 for each
  std::function<void(std::int64_t samples)> progress = {};  ///< called after each merge; may be empty
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;  ///< the clock
};

/// Records a training for a Comparison. It tests the merged model on `test` at the first merge at or after
/// each multiple of `testEvery` samples, and at the end; the time of these tests is not counted.
///
///     const RunRecorderOptions options{.arm = "averaging", .seed = 1};
///     auto recorder = std::make_shared<RunRecorder>(test, options);
///     auto wrapper = ParallelWrapper::Builder(model).workers(2).listeners({recorder}).build();
///     wrapper.fit(train);
///     comparison.add(recorder->finish(wrapper));
///
/// A recorder records one training, which may be several calls of `fit()`. One thread at a time; a merged
/// listener, whose functions `fit()` calls one at a time.
class RunRecorder final : public Listener {
 public:
  /// @param test  must outlive the recorder; the training must not read it at the same time.
  RunRecorder(DataSetIterator& test, RunRecorderOptions options);
  ~RunRecorder() override;

  /// The record of the finished training, with a test of the trained model. After early stopping with
  /// `restoreBest` that is the restored model, so the last point has its score, at the samples of the last
  /// merge. If predictions, score or loss of the model are not finite, returns the record of a failure.
  /// @param trained  tests it: the ParallelWrapper, or a network that trained by itself.
  /// @throws what else the test throws.
  template <typename Trained>
  RunRecord finish(Trained& trained) {
    return finishBy([&](DataSetIterator& data) { return trained.evaluateTask(data); });
  }
  /// The record of a training that ended because a score, a loss or a gradient was not finite.
  /// @param cause  of the end: what `fit()` threw. @throws `cause` if it is any other failure.
  RunRecord failed(const std::exception_ptr& cause);

  /// The values of each merge by name, as {iteration, value}, with the names that a file of curves has. The
  /// curves of tests end with the model that `finish` tested.
  const std::map<std::string, std::vector<std::pair<std::int64_t, double>>>& curves() const {
    return curves_;
  }

  bool readsDivergence() const override { return true; }
  void onFitStart(const FitEvent& event) override;
  void onEpochStart(const EpochEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  void onFitEnd(Trainer& trainer) override;

 private:
  using Clock = std::chrono::steady_clock;
  using Test = std::function<AnyEvaluation(DataSetIterator&)>;

  RunRecord finishBy(const Test& test);
  /// Counts a merge of several workers.
  void noteMerge(const MergeEvent& event);
  /// Tests the model, and adds the point. @throws NonFiniteScore.
  void addPoint(const Test& test);
  void curve(const char* name, double value) { curves_[name].emplace_back(now_.iterations, value); }

  DataSetIterator& test_;
  RunRecorderOptions options_;
  Every every_;
  RunRecord record_;
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> curves_;
  RunPoint now_;                              // the counters so far
  double lossSum_ = 0;                        // since the last point, scores weighted by samples
  std::vector<double> distances_;             // since the last point
  Clock::time_point since_;                   // start of the time that is being measured
  std::unique_ptr<detail::OthersLoad> load_;  // of other programs, from the first fit() on
};

}  // namespace muster
