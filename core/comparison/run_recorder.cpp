#include "muster/core/comparison/run_recorder.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/is_divergence.h"
#include "muster/core/comparison/detail/others_load.h"
#include "muster/core/comparison/sample_mean.h"
#include "muster/core/device/device.h"
#include "muster/core/eval/guess_remark.h"
#include "muster/core/eval/non_finite_prediction.h"

namespace muster {
namespace {

template <typename E>
bool isA(const std::exception_ptr& cause) try {
  std::rethrow_exception(cause);
} catch (const E&) {
  return true;
} catch (...) {
  return false;
}

/// What a TrainingError was thrown for; another exception itself.
std::exception_ptr causeOf(const std::exception_ptr& exception) try {
  std::rethrow_exception(exception);
} catch (const TrainingError& error) {
  return error.cause();
} catch (...) {
  return exception;
}

}  // namespace

RunRecorder::RunRecorder(DataSetIterator& test, RunRecorderOptions options)
    : test_(test),
      options_(std::move(options)),
      every_(options_.testEvery),
      record_{.arm = options_.arm,
              .settings = options_.settings,
              .seed = options_.seed,
              .on = options_.on,
              .cores = availableParallelism()} {}

RunRecorder::~RunRecorder() = default;

void RunRecorder::onFitStart(const FitEvent& event) {
  record_.workers = event.trainer.workers();
  record_.threads = record_.workers * options_.threadsPerWorker;
  if (!load_) load_ = std::make_unique<detail::OthersLoad>();
}

void RunRecorder::onEpochStart(const EpochEvent&) {
  since_ = options_.now();
}

void RunRecorder::onMerge(const MergeEvent& event) {
  const auto stopped = options_.now();
  now_.seconds += std::chrono::duration<double>(stopped - since_).count();
  now_.samples += event.examples;
  now_.iterations = event.iteration;
  lossSum_ += event.score * static_cast<double>(event.examples);
  curve("at/samples", static_cast<double>(now_.samples));
  curve("at/seconds", now_.seconds);
  if (event.examples > 0) curve("score/merged", event.score);
  if (event.kind == MergeKind::Updates || event.kind == MergeKind::Resynchronisation) record_.summed = false;
  if (event.trainer.workers() > 1) noteMerge(event);
  if (every_.passed(now_.samples))
    addPoint([&](DataSetIterator& data) { return event.trainer.evaluateTask(data); });
  if (options_.progress) options_.progress(now_.samples);
  since_ = options_.now();
}

void RunRecorder::noteMerge(const MergeEvent& event) {
  ++now_.rounds;
  now_.bytes += event.bytes;
  curve("at/bytes", static_cast<double>(now_.bytes));
  if (event.kind == MergeKind::Resynchronisation) {  // its divergence is what messages had withheld
    ++now_.resynchronisations;
    now_.resynchronisationBytes += event.bytes;
    curve("mark/resynchronisation", 1);
  } else if (event.divergence > 0) {  // 0: not measured at this merge
    distances_.push_back(event.divergence);
    curve("merge/divergence", event.divergence);
  }
}

void RunRecorder::addPoint(const Test& test) {
  const AnyEvaluation result = [&] {
    try {
      return test(test_);
    } catch (const Error&) {
      const auto cause = causeOf(std::current_exception());
      if (!isA<NonFinitePrediction>(cause)) throw;
      throw NonFiniteScore(fmt::format("a test of the merged model: {}", describe(cause)));
    }
  }();
  // Shared gradients resynchronise at an epoch's end, and early stopping changes the model after the last
  // merge, both at a sample count that was tested before: the new test replaces the earlier one.
  auto& points = record_.points;
  if (!points.empty() && points.back().samples == now_.samples) {
    now_.trainingLoss = points.back().trainingLoss;
    now_.distance = points.back().distance;
    points.pop_back();
  } else {
    const auto samples = now_.samples - (points.empty() ? 0 : points.back().samples);
    now_.trainingLoss = samples > 0 ? lossSum_ / static_cast<double>(samples) : 0;
    now_.distance = sampleMeanOf(distances_).mean;
    lossSum_ = 0;
    distances_.clear();
  }
  const auto [name, score] = result.mainScore();
  require(result.task() != Task::Regression || !std::isnan(score),
          "all numbers to predict of the test data are equal, so R2 is undefined and compares nothing");
  if (!std::isfinite(score) || !std::isfinite(result.loss()))
    throw NonFiniteScore(fmt::format("the {} or the loss of the merged model is no number", name));
  record_.metric = name;
  record_.guess = guessRemark(result, options_.classWeights);
  now_.score = score;
  now_.loss = result.loss();
  points.push_back(now_);
  curve(name == "r2" ? "test/r2" : "test/accuracy", score);
  curve("test/loss", now_.loss);
}

RunRecord RunRecorder::finishBy(const Test& test) try {
  addPoint(test);
  return record_;
} catch (const Error&) {
  return failed(std::current_exception());
}

RunRecord RunRecorder::failed(const std::exception_ptr& exception) {
  if (!isDivergence(exception)) std::rethrow_exception(exception);
  record_.failure = describe(causeOf(exception));
  return record_;
}

void RunRecorder::onFitEnd(Trainer& trainer) {
  const auto times = trainer.workerTimes();
  for (const auto& worker : times)
    record_.computeSeconds +=
        std::chrono::duration<double>(worker.computing).count() / static_cast<double>(times.size());
  if (!load_) return;
  record_.othersBusy = load_->cores();
  record_.loaded = detail::OthersLoad::crowds(record_.othersBusy, record_.threads);
}

}  // namespace muster
