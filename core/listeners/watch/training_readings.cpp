#include "muster/core/listeners/watch/training_readings.h"

#include <unistd.h>

#include <fstream>

#include "muster/core/base/error.h"
#include "muster/core/listeners/performance_report.h"
#include "muster/core/nn/network.h"

namespace muster {
namespace {

/// Resident memory of this process; nothing if the system does not report it.
std::optional<std::int64_t> residentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  if (!(statm >> size >> resident)) return std::nullopt;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

void TrainingReadings::Mean::add(double score, std::int64_t count) {
  sum += score * static_cast<double>(count);
  examples += count;
}

double TrainingReadings::Mean::take(std::int64_t iteration, Clock::time_point at) {
  const double mean = sum / static_cast<double>(examples);
  sum = 0;
  examples = 0;
  read = iteration;
  readAt = at;
  return mean;
}

TrainingReadings::TrainingReadings(ReadingOptions options, Sink sink)
    : options_(std::move(options)), sink_(std::move(sink)) {
  require(options_.everyIterations >= 1, "readings of a training: everyIterations must be at least 1, got {}",
          options_.everyIterations);
  require(options_.everyTime.count() >= 0, "readings of a training: everyTime cannot be negative");
  require(options_.scoresEvery.count() >= 0, "readings of a training: scoresEvery cannot be negative");
}

void TrainingReadings::fitStart(const FitEvent& event) {
  model_ = &event.trainer.model();
  mark_ = now();
  trained_ = {};
  timesRead_ = false;
  timesBefore_.clear();
  samplesRead_ = places_.samples;
  merged_ = {};
  workers_.clear();
}

void TrainingReadings::resume(std::int64_t step, const Places& places) {
  places_ = places;
  samplesRead_ = places.samples;
  readPlaces(step);
}

void TrainingReadings::epochStart() {
  mark_ = now();
}

void TrainingReadings::countTime() {
  const auto time = now();
  trained_ += time - mark_;
  places_.trained += time - mark_;
  mark_ = time;
}

bool TrainingReadings::due(const Mean& mean, std::int64_t iteration, Clock::time_point at) const {
  return mean.examples > 0 && iteration / options_.everyIterations > mean.read / options_.everyIterations &&
         at - mean.readAt >= options_.scoresEvery;
}

void TrainingReadings::iteration(const IterationEvent& event) {
  const auto worker = static_cast<std::size_t>(event.worker);
  if (worker >= workers_.size()) workers_.resize(worker + 1);
  while (workerNames_.size() <= worker)
    workerNames_.push_back(fmt::format("score/worker {}", workerNames_.size()));
  Mean& mean = workers_[worker];
  const std::int64_t step = event.stamp.iteration + 1;
  mean.add(event.score, event.examples);
  mean.last = step;
  if (const auto at = now(); due(mean, step, at)) sink_(workerNames_[worker], step, mean.take(step, at));
}

void TrainingReadings::merge(const MergeEvent& event) {
  const std::int64_t step = event.iteration;
  lastMerge_ = step;
  merged_.add(event.score, event.examples);
  places_.samples += event.examples;
  places_.bytes += event.bytes;
  countTime();
  if (event.divergence > 0 && (!divergenceAt_ || mark_ - *divergenceAt_ >= options_.scoresEvery)) {
    sink_("merge/divergence", step, event.divergence);
    divergenceAt_ = mark_;
  }
  const bool scored = due(merged_, step, mark_);
  if (scored) sink_("score/merged", step, merged_.take(step, mark_));
  if (options_.places && event.kind == MergeKind::Resynchronisation) sink_("mark/resynchronisation", step, 1);
  if (scored || event.examples == 0) {
    sink_("merge/milliseconds", step, std::chrono::duration<double, std::milli>(event.mergeTime).count());
    if (event.bytes > 0) sink_("merge/bytes", step, static_cast<double>(event.bytes));
    for (const auto& [name, value] : event.values) {
      auto known = valueNames_.find(name);
      if (known == valueNames_.end())
        known = valueNames_.emplace(std::string(name), fmt::format("merge/{}", name)).first;
      sink_(known->second, step, value);
    }
    if (dynamic_cast<const Network*>(model_) != nullptr)
      sink_("training/learning rate", step, model_->learningRate().at(step, event.epoch));
  }
  if (trained_ >= options_.everyTime) readTimes(event.trainer, step);
  readTests();
}

void TrainingReadings::epochEnd(const EpochEvent& event) {
  sink_("score/epoch", event.iteration, event.score);
  // A short training gets some readings, too.
  if (!timesRead_ || trained_ >= options_.everyTime / 10) readTimes(event.trainer, event.iteration);
  readPlaces(event.iteration);
  readTests();
}

void TrainingReadings::fitEnd(Trainer& trainer) {
  const auto at = now();
  if (merged_.examples > 0) sink_("score/merged", lastMerge_, merged_.take(lastMerge_, at));
  for (std::size_t w = 0; w < workers_.size(); ++w)
    if (auto& mean = workers_[w]; mean.examples > 0)
      sink_(workerNames_[w], mean.last, mean.take(mean.last, at));
  readTimes(trainer, lastMerge_);
  readTests();
}

void TrainingReadings::readTimes(Trainer& trainer, std::int64_t step) {
  const auto samples = places_.samples - samplesRead_;
  if (samples == 0) return;  // no round has ended since
  const auto report = performanceBetween(timesBefore_, trainer.workerTimes(), trained_);
  if (report.seconds > 0)
    sink_("training/samples per second", step, static_cast<double>(samples) / report.seconds);
  WorkerTimes all;
  for (const auto& worker : report.workers) {
    all.computing += worker.computing;
    all.waitingForData += worker.waitingForData;
    all.waitingForWorkers += worker.waitingForWorkers;
    all.merging += worker.merging;
    readShares(fmt::format("time/worker {}/", worker.worker), worker, step);
  }
  readShares("time/all/", all, step);
  if (const auto bytes = residentBytes()) sink_("memory/resident bytes", step, static_cast<double>(*bytes));
  readPlaces(step);
  timesBefore_ = trainer.workerTimes();
  samplesRead_ = places_.samples;
  trained_ = {};
  timesRead_ = true;
}

void TrainingReadings::readShares(const std::string& prefix, const WorkerTimes& times, std::int64_t step) {
  const auto shares = PerformanceReport::shares(times);
  sink_(prefix + "computing", step, shares.computing);
  sink_(prefix + "waiting for data", step, shares.waitingForData);
  sink_(prefix + "synchronising", step, shares.waitingForWorkers);
  sink_(prefix + "merging", step, shares.merging);
}

void TrainingReadings::readPlaces(std::int64_t step) {
  if (!options_.places) return;
  sink_("at/samples", step, static_cast<double>(places_.samples));
  sink_("at/seconds", step, std::chrono::duration<double>(places_.trained).count());
  if (places_.bytes > 0) sink_("at/bytes", step, static_cast<double>(places_.bytes));
}

void TrainingReadings::readTests() {
  if (!options_.evaluation) return;
  const auto& results = options_.evaluation->results();
  const std::string data = options_.evaluation->data().empty() ? "test" : options_.evaluation->data();
  for (; testsRead_ < results.size(); ++testsRead_) {
    const auto& result = results[testsRead_];
    const auto [name, value] = result.evaluation.mainScore();
    sink_(fmt::format("{}/{}", data, name), result.iteration, value);
    sink_(data + "/loss", result.iteration, result.evaluation.loss());
  }
}

}  // namespace muster
