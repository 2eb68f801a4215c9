// Parts of Rounds: how a training begins, what nodes send each other, and what a failure or a
// checkpoint needs.
#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/training/rounds.h"

namespace muster {

void Rounds::start() {
  flights_.begin(strategy_.fragments());
  const auto& resumed = options_.resumed.rounds;
  if (!resumed) return planNextRound();
  if (arrivals_) arrivals_->planNext();
  progress_.rounds = resumed->rounds;
  plan_ = resumed->plan;
  flights_.resume(resumed->inFlight, resumed->weights);
  try {
    requirePlan();
  } catch (const InvalidArgument& error) {
    throw SavedStateError(fmt::format("training state: {}", error.what()));
  }
}

void Rounds::requirePlan() const {
  require(plan_.iterations >= 1, "the strategy's plan: a round must have at least 1 iteration, got {}",
          plan_.iterations);
  require(plan_.iterations <= detail::kMostIterations,
          "the strategy's plan: a round has at most {} iterations, got {}", detail::kMostIterations,
          plan_.iterations);
  require(plan_.iterations == 1 || localWork() == LocalWork::Step,
          "the strategy's plan: a round of gradients has 1 iteration, got {}", plan_.iterations);
}

/// Sends all contributions to every node, so that all nodes decide alike.
void Rounds::agree(Exchange& exchange) {
  stopping_ = stopAsked();
  regrouping_ = options_.regroup != nullptr && *options_.regroup;
  if (place_.nodes > 1) agreeWithNodes(exchange);
  // At a stop or an epoch's end the run does not regroup.
  if (stopping_ || std::ranges::all_of(contributions_, &Contribution::ended)) regrouping_ = false;
}

void Rounds::agreeWithNodes(Exchange& exchange) {
  const auto local = static_cast<std::size_t>(place_.local), nodes = static_cast<std::size_t>(place_.nodes);
  for (std::size_t l = 0; l < local; ++l)
    own_[l] = contributions_[static_cast<std::size_t>(place_.worker(static_cast<int>(l)))];
  measuring_ = measurementDue();
  listening_ = options_.coordinatorJoinsEveryRound;
  own_[local] = {.ended = stopping_, .late = measuring_, .staged = regrouping_, .listening = listening_};
  exchange.gather(std::as_bytes(std::span(own_)), std::as_writable_bytes(std::span(all_)));
  for (std::size_t n = 0; n < nodes; ++n) {
    const auto its = std::span(all_).subspan(n * own_.size(), own_.size());
    for (std::size_t l = 0; l < local; ++l) contributions_[l * nodes + n] = its[l];
    stopping_ = stopping_ || its[local].ended;
    regrouping_ = regrouping_ || its[local].staged;
    measuring_ = measuring_ || its[local].late;
    listening_ = listening_ || its[local].listening;
  }
  if (stopping_) options_.stop = true;
}

std::int64_t Rounds::firstLandings() const {
  return options_.resumed.rounds ? options_.resumed.rounds->landings : 0;
}

std::int64_t Rounds::firstIteration() const {
  return firstLandings() > 0 ? options_.resumed.rounds->epochIteration : options_.firstIteration;
}

Contribution Rounds::begunWith(int worker) const {
  return firstLandings() > 0 ? options_.resumed.rounds->unmerged.at(static_cast<std::size_t>(worker))
                             : Contribution{};
}

std::int64_t Rounds::iterations(int worker) const {
  if (!arrivals_) return plan_.iterations;
  if (gate_) return arrivals_->iterations(worker);
  return arrivals_->untilLanding(worker, unmerged(static_cast<std::size_t>(worker)).batches);
}

void Rounds::noteArrival(int worker, const Contribution& contribution) {
  if (gate_ || !onWallClock()) return;
  if (contribution.ended || arrivals_->hasArrived(worker, contribution.batches)) landingDue_ = true;
}

/// Copies the merged copies before a merge that may fail, unless workers have done so.
void Rounds::keepLastMerge(Exchange& exchange) {
  // Merges multiply by factors up to about 2^20: numbers below kLarge stay far from overflow.
  constexpr double kLarge = 0x1p40;
  const bool mayOverflow =
      looksAtReplicas() && std::ranges::max(contributions_, {}, &Contribution::largest).largest > kLarge;
  if (exchange.keepsMerges() ? gate_.has_value() : mayOverflow) exchange.keepAll();
  mergeKept_ = exchange.keepsMerges() || mayOverflow;
}

/// Which batches of the epoch are trained.
EpochPosition Rounds::trainedPosition() const {
  const bool first = epoch_ == options_.firstEpoch;
  const EpochPosition begun = first ? options_.resumed.position : EpochPosition{};
  if (!arrivals_) return begun.after(counts_);
  std::int64_t trained = 0;
  std::vector<std::int64_t> untrained;
  for (std::size_t w = 0; w < counts_.size(); ++w) {
    trained += counts_[w] + unmerged(w).batches;
    if (contributions_[w].untrained >= 0) untrained.push_back(contributions_[w].untrained);
  }
  if (result_.verdict != Verdict::Stop) return begun.after(std::span(&trained, 1));
  if (onWallClock())
    return afterTaking(begun, trained + static_cast<std::int64_t>(untrained.size()), untrained);
  ArrivalOrder order = arrivals_->newOrder();
  order.restart(epochIteration_, epoch_);
  for (std::int64_t l = 0; first && l < firstLandings(); ++l) order.land();
  return afterDealing(begun, std::move(order), counts_);
}

EpochPosition Rounds::position() const {
  if (result_.verdict == Verdict::EpochOver) return {.score = result_.score};
  EpochPosition now = trainedPosition();
  now.examples = result_.examplesInEpoch;
  for (std::size_t w = 0; w < counts_.size(); ++w) now.examples += unmerged(w).examples;
  now.scoreSum = result_.scoreSumInEpoch;
  now.weight = result_.weightInEpoch;
  now.score = result_.score;
  return now;
}

EpochPosition Rounds::committedPosition() const {
  const RoundResult& round = committed();
  if (round.verdict == Verdict::EpochOver) return {.score = round.score};
  const bool first = round.epoch == options_.firstEpoch;
  const EpochPosition begun = first ? options_.resumed.position : EpochPosition{};
  EpochPosition now = begun.after(isCommitted() ? counts_ : previousCounts_);
  now.examples = round.examplesInEpoch;
  now.scoreSum = round.scoreSumInEpoch;
  now.weight = round.weightInEpoch;
  now.score = round.score;
  return now;
}

RoundsState Rounds::state() const {
  RoundsState now{.rounds = arrivals_ ? 0 : progress_.rounds,  // with arrivals, listeners change it
                  .plan = plan_,
                  .inFlight = flights_.inFlight(),
                  .weights = flights_.weights()};
  // At the end of an epoch and at a stop all workers continue from the same state.
  if (!arrivals_ || result_.verdict != Verdict::Continue) return now;
  now.landings = arrivals_->landings();
  now.epochIteration = epochIteration_;
  for (std::size_t w = 0; w < counts_.size(); ++w) now.unmerged.push_back(unmerged(w));
  return now;
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

bool Rounds::beginTask(std::function<void(int)> task) {
  task_ = std::move(task);
  return resumed_.arrive();  // a barrier lets all threads pass or none
}

void Rounds::endTask() {
  if (merged_.arrive()) task_ = {};
}

void Rounds::abort() {
  for (auto* barrier : {&gathered_, &reduced_, &mergedAlone_, &merged_, &resumed_}) barrier->abort();
  if (gate_) gate_->abort();
}

}  // namespace muster
