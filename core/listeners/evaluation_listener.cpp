#include "muster/core/listeners/evaluation_listener.h"

#include <string_view>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/data_set_iterator.h"

namespace muster {

EvaluationListener::EvaluationListener(DataSetIterator& data, EvaluationOptions options)
    : data_(data), options_(std::move(options)), everyIterations_(options_.everyIterations) {
  require(options_.everyEpochs >= 0, "evaluation listener: everyEpochs cannot be negative, got {}",
          options_.everyEpochs);
  require(options_.everyIterations >= 0, "evaluation listener: everyIterations cannot be negative, got {}",
          options_.everyIterations);
  require(options_.everyEpochs > 0 || options_.everyIterations > 0,
          "evaluation listener: everyEpochs and everyIterations are both 0, so it would never evaluate");
}

std::string EvaluationListener::describe() const {
  return fmt::format("EvaluationListener (everyEpochs={}, everyIterations={}, examples={}, batchSize={})",
                     options_.everyEpochs, options_.everyIterations, data_.examples().value_or(-1),
                     data_.batchSize().value_or(-1));
}

void EvaluationListener::onEpochStart(const EpochEvent& event) {
  everyIterations_.start(event.iteration);
  current_ = false;
}

void EvaluationListener::onMerge(const MergeEvent& event) {
  current_ = false;
  if (!everyIterations_.passed(event.iteration)) return;
  results_.push_back({event.epoch, event.iteration, event.trainer.evaluateTask(data_, options_.task)});
  current_ = true;
  write("iteration", event.iteration);
}

void EvaluationListener::onEpochEnd(const EpochEvent& event) {
  const std::int64_t finished = event.epoch + 1;
  const bool known = std::exchange(current_, false);
  if (options_.everyEpochs == 0 || finished % options_.everyEpochs != 0) return;
  results_.push_back({finished, event.iteration,
                      known ? results_.back().evaluation : event.trainer.evaluateTask(data_, options_.task)});
  write("epoch", finished);
}

void EvaluationListener::write(std::string_view unit, std::int64_t count) {
  if (!onFirstNode()) return;
  const AnyEvaluation& e = results_.back().evaluation;
  writeLine(options_.sink,
            fmt::format("{} {}: {}{}{} on {}", unit, count, options_.data, options_.data.empty() ? "" : " ",
                        e.line(), plural(e.examples(), "example")));
}

}  // namespace muster
