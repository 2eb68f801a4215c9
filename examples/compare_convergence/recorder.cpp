#include "examples/compare_convergence/recorder.h"

#include <utility>

namespace convergence {

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
  if (event.trainer.workers() > 1) noteMerge(event);
  if (every_.passed(now_.samples) || now_.samples == options_.samples) testNow(event.trainer);
  if (options_.progress) options_.progress(now_.samples);
  since_ = options_.now();
}

void Recorder::noteMerge(const muster::MergeEvent& event) {
  const bool again = event.kind == muster::MergeKind::Resynchronisation;
  ++now_.rounds;
  now_.bytes += event.bytes;
  if (again) {
    ++now_.resynchronisations;
    now_.resynchronisationBytes += event.bytes;
  }
  merges_.push_back({.samples = now_.samples,
                     .iterations = event.iteration,
                     .seconds = now_.seconds,
                     .loss = event.score,
                     .distance = options_.apart ? event.divergence : 0,
                     .bytes = event.bytes,
                     .resynchronisation = again,
                     .drift = again ? event.divergence : 0});
}

void Recorder::testNow(muster::Trainer& trainer) {
  // The last resynchronisation of shared gradients merges again at the same sample count: its test replaces
  // the earlier one.
  const bool again = !points_.empty() && points_.back().samples == now_.samples;
  if (again)
    points_.pop_back();
  else
    closeInterval();
  const TestResult result = options_.test(trainer.model());
  now_.testAccuracy = result.accuracy;
  now_.testLoss = result.loss;
  points_.push_back(now_);
}

void Recorder::closeInterval() {
  const auto samples = now_.samples - (points_.empty() ? 0 : points_.back().samples);
  now_.trainingLoss = samples > 0 ? lossSum_ / static_cast<double>(samples) : 0;
  now_.distance = 0;
  for (std::size_t i = mergesThen_; i < merges_.size(); ++i)
    now_.distance += merges_[i].distance / static_cast<double>(merges_.size() - mergesThen_);
  lossSum_ = 0;
  mergesThen_ = merges_.size();
}

void Recorder::onFitEnd(muster::Trainer& trainer) {
  const auto times = trainer.workerTimes();
  for (const auto& worker : times)
    computeSeconds_ +=
        std::chrono::duration<double>(worker.computing).count() / static_cast<double>(times.size());
}

}  // namespace convergence
