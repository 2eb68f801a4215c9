#include "muster/core/listeners/score_listener.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/listeners/progress_text.h"

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
  const double score = scoreSum_ / static_cast<double>(examples_);
  writeLine(sink_, fmt::format("iteration {}, epoch {}: score {}", event.iteration, event.epoch + 1,
                               std::abs(score) < 1e5 ? fmt::format("{:.6f}", score) : scoreDigits(score)));
  scoreSum_ = 0;
  examples_ = 0;
}

}  // namespace muster
