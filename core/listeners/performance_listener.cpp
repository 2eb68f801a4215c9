#include "muster/core/listeners/performance_listener.h"

#include <algorithm>
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
  merged_ = mergedAtLastLine_ = 0;
}

void PerformanceListener::onEpochStart(const EpochEvent& event) {
  everyIterations_.start(event.iteration);
  lastLine_ = now();
  epochBegin_ = lastLine_;
}

void PerformanceListener::onMerge(const MergeEvent& event) {
  merged_ += event.examples;
  const auto time = now();
  const bool timeIsUp = options_.every.count() > 0 && time - lastLine_ >= options_.every;
  if (!everyIterations_.passed(event.iteration) && !timeIsUp) return;
  auto times = event.trainer.workerTimes();
  auto report = performanceBetween(atLastLine_, times, time - lastLine_);
  addOthers(report, merged_ - mergedAtLastLine_);
  writeLine(options_.sink, fmt::format("iteration {}: {}", event.iteration, report.line()));
  atLastLine_ = std::move(times);
  mergedAtLastLine_ = merged_;
  lastLine_ = time;
}

void PerformanceListener::onEpochEnd(const EpochEvent& event) {
  closeEpoch(event.trainer);
  atLastLine_ = report_.workers;
  mergedAtLastLine_ = merged_;
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
  addOthers(report_, merged_);
}

void PerformanceListener::addOthers(PerformanceReport& report, std::int64_t merged) const {
  if (options_.overNodes) report.elsewhere = std::max<std::int64_t>(merged - report.examples(), 0);
}

}  // namespace muster
