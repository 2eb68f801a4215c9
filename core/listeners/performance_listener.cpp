#include "muster/core/listeners/performance_listener.h"

#include <sstream>

#include "muster/core/base/error.h"

namespace muster {

PerformanceListener::PerformanceListener(PerformanceOptions options)
    : options_(std::move(options)), everyIterations_(options_.everyIterations) {
  require(options_.everyIterations >= 0, "performance listener: everyIterations cannot be negative, got {}",
          options_.everyIterations);
  require(options_.every.count() >= 0, "performance listener: the interval cannot be negative");
}

void PerformanceListener::onFitStart(const FitEvent&) {
  report_ = {};
  training_ = {};
  epochBegin_.reset();
  atLastLine_.clear();
}

void PerformanceListener::onEpochStart(const EpochEvent& event) {
  everyIterations_.start(event.iteration);
  lastLine_ = now();
  epochBegin_ = lastLine_;
}

void PerformanceListener::onMerge(const MergeEvent& event) {
  const auto time = now();
  const bool timeIsUp = options_.every.count() > 0 && time - lastLine_ >= options_.every;
  if (!everyIterations_.passed(event.iteration) && !timeIsUp) return;
  auto times = event.trainer.workerTimes();
  const auto report = performanceBetween(atLastLine_, times, time - lastLine_);
  writeLine(options_.sink, fmt::format("iteration {}: {}", event.iteration, report.line()));
  atLastLine_ = std::move(times);
  lastLine_ = time;
}

void PerformanceListener::onEpochEnd(const EpochEvent& event) {
  closeEpoch(event.trainer);
  atLastLine_ = report_.workers;
}

void PerformanceListener::onFitEnd(Trainer& trainer) {
  closeEpoch(trainer);  // for an epoch that was stopped early
  if (!options_.tableAtEnd) return;
  std::istringstream table(report_.table());
  for (std::string line; std::getline(table, line);) writeLine(options_.sink, line);
}

void PerformanceListener::closeEpoch(Trainer& trainer) {
  if (!epochBegin_) return;
  training_ += now() - *epochBegin_;
  epochBegin_.reset();
  report_ = performanceBetween({}, trainer.workerTimes(), training_);
}

}  // namespace muster
