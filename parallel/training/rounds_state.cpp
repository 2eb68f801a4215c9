// Where a training begins, and what a checkpoint holds of it.
#include "muster/core/base/error.h"
#include "muster/parallel/training/rounds.h"

namespace muster {
namespace {

constexpr std::int64_t kMostIterations = std::int64_t{1} << 40;

}  // namespace

void Rounds::start() {
  flights_.begin(strategy_.fragments());
  const auto& resumed = options_.resumed.rounds;
  if (!resumed) return planNextRound();
  progress_.rounds = resumed->rounds;
  plan_ = resumed->plan;
  flights_.resume(resumed->inFlight, resumed->weights);
  requirePlan();
}

void Rounds::requirePlan() const {
  require(plan_.iterations >= 1, "the strategy's plan: a round must have at least 1 iteration, got {}",
          plan_.iterations);
  require(plan_.iterations <= kMostIterations,
          "the strategy's plan: a round has at most {} iterations, got {}", kMostIterations,
          plan_.iterations);
  require(plan_.iterations == 1 || localWork() == LocalWork::Step,
          "the strategy's plan: a round of gradients has 1 iteration, got {}", plan_.iterations);
}

EpochPosition Rounds::position() const {
  if (result_.verdict == Verdict::EpochOver) return {.score = result_.score};
  const bool first = epoch_ == options_.firstEpoch;
  EpochPosition now = (first ? options_.resumed.position : EpochPosition{}).after(counts_);
  now.examples = result_.examplesInEpoch;
  now.scoreSum = result_.scoreSumInEpoch;
  now.weight = result_.weightInEpoch;
  now.score = result_.score;
  return now;
}

RoundsState Rounds::state() const {
  // A strategy with arrivals starts anew with each epoch.
  return {.rounds = arrivals_ ? 0 : progress_.rounds,
          .plan = plan_,
          .inFlight = flights_.inFlight(),
          .weights = flights_.weights()};
}

}  // namespace muster
