// Where a training begins, what nodes tell each other, and what a checkpoint holds of it.
#include <algorithm>

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

/// Every node hears what all workers bring, so that all decide alike.
void Rounds::agree(Exchange& exchange) {
  stopping_ = stopAsked();
  if (place_.nodes == 1) return;
  const auto local = static_cast<std::size_t>(place_.local), nodes = static_cast<std::size_t>(place_.nodes);
  for (std::size_t l = 0; l < local; ++l)
    own_[l] = contributions_[static_cast<std::size_t>(place_.worker(static_cast<int>(l)))];
  own_[local] = {.ended = stopping_};
  exchange.gather(std::as_bytes(std::span(own_)), std::as_writable_bytes(std::span(all_)));
  for (std::size_t n = 0; n < nodes; ++n) {
    const auto its = std::span(all_).subspan(n * own_.size(), own_.size());
    for (std::size_t l = 0; l < local; ++l) contributions_[l * nodes + n] = its[l];
    stopping_ = stopping_ || its[local].ended;
  }
  if (stopping_) options_.stop = true;
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

std::chrono::nanoseconds Rounds::mergeTime() const {
  return *std::ranges::max_element(mergeTimes_);
}

std::int64_t Rounds::bytes() const {
  std::int64_t bytes = 0, contributors = 0;
  for (const std::int64_t sent : bytes_) {
    bytes += sent;
    contributors += sent > 0 ? 1 : 0;
  }
  return contributors > 0 ? bytes / contributors : 0;
}

}  // namespace muster
