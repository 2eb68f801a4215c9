#include "muster/core/listeners/score_listener.h"

#include "muster/core/base/error.h"

namespace muster {

ScoreListener::ScoreListener(std::int64_t everyIterations, LineSink sink)
    : every_(everyIterations), sink_(std::move(sink)) {
  require(everyIterations >= 1, "score listener: everyIterations must be at least 1, got {}",
          everyIterations);
}

void ScoreListener::onEpochStart(const EpochEvent& event) {
  every_.start(event.iteration);
}

void ScoreListener::onMerge(const MergeEvent& event) {
  scoreSum_ += event.score * static_cast<double>(event.examples);
  examples_ += event.examples;
  if (!every_.passed(event.iteration) || examples_ == 0) return;
  writeLine(sink_, fmt::format("iteration {}, epoch {}: score {:.6f}", event.iteration, event.epoch + 1,
                               scoreSum_ / static_cast<double>(examples_)));
  scoreSum_ = 0;
  examples_ = 0;
}

}  // namespace muster
