#include "examples/muster/compare/recorder.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "examples/muster/compare/number_text.h"
#include "muster/core/base/error.h"

namespace comparing {

Recorder::Recorder(RecorderOptions options) : options_(std::move(options)), every_(options_.testEvery) {}

void Recorder::onEpochStart(const muster::EpochEvent&) {
  since_ = options_.now();
}

void Recorder::onMerge(const muster::MergeEvent& event) {
  const auto stopped = options_.now();
  now_.seconds += std::chrono::duration<double>(stopped - since_).count();
  now_.samples += event.examples;
  now_.iterations = event.iteration;
  lossSum_ += event.score * static_cast<double>(event.examples);
  curve("at/samples", static_cast<double>(now_.samples));
  curve("at/seconds", now_.seconds);
  if (event.examples > 0) curve("score/merged", event.score);
  if (event.trainer.workers() > 1) noteMerge(event);
  if (every_.passed(now_.samples)) addPoint(options_.test(event.trainer));
  if (options_.progress) options_.progress(now_.samples);
  since_ = options_.now();
}

void Recorder::noteMerge(const muster::MergeEvent& event) {
  ++now_.rounds;
  now_.bytes += event.bytes;
  curve("at/bytes", static_cast<double>(now_.bytes));
  if (event.kind == muster::MergeKind::Resynchronisation) {  // its divergence is what messages had withheld
    ++now_.resynchronisations;
    now_.resynchronisationBytes += event.bytes;
    curve("mark/resynchronisation", 1);
  } else if (event.divergence > 0) {  // 0: not measured at this merge
    distances_.push_back(event.divergence);
    curve("merge/divergence", event.divergence);
  }
}

void Recorder::addPoint(const muster::AnyEvaluation& result) {
  // Shared gradients resynchronise at an epoch's end, and early stopping changes the model after the last
  // merge, both at a sample count that was tested before: the new test replaces the earlier one.
  if (!points_.empty() && points_.back().samples == now_.samples) {
    now_.trainingLoss = points_.back().trainingLoss;
    now_.distance = points_.back().distance;
    points_.pop_back();
  } else {
    const auto samples = now_.samples - (points_.empty() ? 0 : points_.back().samples);
    now_.trainingLoss = samples > 0 ? lossSum_ / static_cast<double>(samples) : 0;
    now_.distance = spreadOf(distances_).mean;
    lossSum_ = 0;
    distances_.clear();
  }
  const auto [name, score] = result.mainScore();
  if (!std::isfinite(score) || !std::isfinite(result.loss()))
    throw muster::NonFiniteScore(fmt::format("the {} or the loss of the merged model is no number", name));
  now_.score = score;
  now_.loss = result.loss();
  points_.push_back(now_);
  curve(name == "r2" ? "test/r2" : "test/accuracy", score);
  curve("test/loss", now_.loss);
}

void Recorder::finish(const muster::AnyEvaluation& result) {
  addPoint(result);
}

void Recorder::onFitEnd(muster::Trainer& trainer) {
  const auto times = trainer.workerTimes();
  for (const auto& worker : times)
    computeSeconds_ +=
        std::chrono::duration<double>(worker.computing).count() / static_cast<double>(times.size());
}

}  // namespace comparing
