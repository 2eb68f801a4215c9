#include "muster/parallel/training/rounds.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/parallel/training/strategy_failure.h"

namespace muster {

using Clock = std::chrono::steady_clock;

namespace {

std::size_t at(const Participant& who) {
  return static_cast<std::size_t>(who.worker);
}

}  // namespace

Rounds::Rounds(const NodePlace& place, const Options& options, PeerSums& peers)
    : place_(place),
      options_(options),
      strategy_(options.strategy),
      peers_(peers),
      gathered_(place.local, options.patience),
      reduced_(place.local, options.patience),
      mergedAlone_(place.local, options.patience),
      merged_(place.local + 1),
      resumed_(place.local + 1),
      contributions_(static_cast<std::size_t>(place.workers())),
      contributionTimes_(contributions_.size()),
      mergeTimes_(contributions_.size()),
      bytes_(contributions_.size()),
      updated_(contributions_.size()),
      counts_(contributions_.size()),
      previousCounts_(contributions_.size()),
      weights_(contributions_.size()),
      own_(static_cast<std::size_t>(place.local) + 1),
      all_(own_.size() * static_cast<std::size_t>(place.nodes)),
      landed_(contributions_.size()),
      flights_(contributions_.size()),
      progress_{.workers = place.workers()},
      epoch_(options.firstEpoch),
      epochIteration_(firstIteration()) {
  const EpochPosition& begun = options.resumed.position;
  result_.iteration = options.firstIteration;
  result_.batchesInEpoch = begun.nextBatch + static_cast<std::int64_t>(begun.trainedLater.size());
  result_.examplesInEpoch = begun.examples;
  result_.scoreSumInEpoch = begun.scoreSum;
  result_.weightInEpoch = begun.weight;
  result_.score = begun.score;
  const auto plan =
      callStrategy("tell how workers arrive", [&] { return strategy_.arrivals(place.workers()); });
  if (!plan) return;
  requireArrivals(*plan, place.workers());
  arrivals_.emplace(*plan, options.learningRate).beginEpoch(epochIteration_, epoch_, firstLandings());
  for (std::size_t w = 0; w < counts_.size(); ++w) {  // unmerged batches count once they are merged
    const Contribution& begunWorker = contributions_[w] = begunWith(static_cast<int>(w));
    counts_[w] -= begunWorker.batches;
    result_.batchesInEpoch -= begunWorker.batches;
    result_.examplesInEpoch -= begunWorker.examples;
  }
  if (!options.meetAtLandings && firstLandings() == 0)
    gate_.emplace(place.workers(), plan->wallClock).beginEpoch(arrivals_->next());
}

bool Rounds::stage(const Participant& who) {
  if (contributions_.size() > 1 || arrivals_) return false;
  if (options_.coordinatorJoinsEveryRound) return false;  // the coordinator reads the replica at once
  who.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  const bool staged = strategy_.stage(who.exchange, who.context);
  who.times.own.merging += Clock::now() - begin;
  return staged;
}

void Rounds::contribute(const Participant& who, double weight) {
  if (arrivals_) return;
  who.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  Verbs verbs(who.exchange, who.worker, who.context, Verbs::Waiting::None);
  strategy_.contribute(weight, verbs);
  contributionTimes_[at(who)] = Clock::now() - begin;
  who.times.own.merging += contributionTimes_[at(who)];
}

bool Rounds::gather(const Participant& who, const Contribution& contribution) {
  const auto arrived = Clock::now();  // before the activity is set: once it is visible, the wait is timed
  who.activity.set(Activity::Kind::WaitingForWorkers);
  const auto bring = [&] { contributions_[at(who)] = contribution; };
  gate_ ? gate_->end(who.worker, bring) : bring();  // a landing worker may be reading them all
  who.exchange.arrive(who.worker, who.context);
  const bool together = gathered_.arrive([&] {
    agree(who.exchange);
    plan(/*met=*/true);
  });
  who.times.own.waitingForWorkers += Clock::now() - arrived;
  return together;
}

void Rounds::plan(bool met) {
  // Merges multiply by factors up to about 2^20: numbers below kLarge stay far from overflow.
  constexpr double kLarge = 0x1p40;
  if (met && looksAtReplicas() &&
      std::ranges::max(contributions_, {}, &Contribution::largest).largest > kLarge)
    options_.keepLastMerge();
  std::ranges::copy(counts_, previousCounts_.begin());
  previous_ = std::exchange(result_, nextResult(met));
  ++rounds_;
  committed_ = false;  // until nothing in this function can fail
  if (result_.verdict == Verdict::EpochOver) {
    ++epoch_;
    std::ranges::fill(counts_, 0);
    peers_.beginAll();  // all workers are at the barrier, none inside a step
  }
  measured_ = measuresNow();
  penaltyAdded_ = landingDue_ = false;
  std::ranges::fill(updated_, 0);
  flights_.endRound(plan_, round(), strategy_.pending());
  if (result_.merging) strategy_.prepare(round());
  // If a late score turns out not to be finite, nothing was merged.
  committed_ = !result_.merging || (localWork() == LocalWork::Step && !late_);
}

void Rounds::takeScore(const Participant& who, const Contribution& contribution) {
  contributions_[at(who)] = contribution;
}

RoundResult Rounds::nextResult(bool met) {
  RoundResult next = result_.next(epoch_);
  next.verdict = !met || std::ranges::any_of(contributions_, &Contribution::staged) ? Verdict::Continue
                 : stopping_ || regrouping_                                         ? Verdict::Stop
                 : std::ranges::all_of(contributions_, &Contribution::ended)        ? Verdict::EpochOver
                                                                                    : Verdict::Continue;
  const bool last = next.verdict != Verdict::Continue;
  next.joinedByCoordinator = last || options_.coordinatorJoinsEveryRound;
  if (arrivals_) arrivals_->settle(contributions_, last, met);
  const auto landing = arrivals_ ? arrivals_->landing() : std::span<const Arrival>();
  for (std::size_t w = 0; w < landing.size(); ++w)
    if (landing[w].arrives) landed_[w] = 1;
  next.add(contributions_, landing, weights_);
  late_ = std::ranges::any_of(contributions_, &Contribution::late);
  if (!late_) next.addScores(contributions_, landing);
  for (std::size_t w = 0; w < counts_.size(); ++w)
    if (!arrivals_ || landing[w].arrives) counts_[w] += contributions_[w].batches;
  next.merging = next.trained || (last && (strategy_.pending() || flights_.outstanding()));
  next.merges += next.merging ? 1 : 0;
  return next;
}

void Rounds::planNextRound() {
  if (std::exchange(late_, false)) {
    result_.addScores(contributions_, {});
    committed_ = true;
  }
  flights_.commit();
  if (arrivals_) {
    const bool begins = result_.verdict == Verdict::EpochOver;
    if (begins) arrivals_->beginEpoch(epochIteration_ = result_.iteration, epoch_);
    arrivals_->planNext();
    if (begins && gate_) gate_->beginEpoch(arrivals_->next());
  }
  const auto values = strategy_.values();
  values_.assign(values.begin(), values.end());  // always the same number of values: allocates once
  const std::int64_t iteration = result_.iteration;
  const double learningRate = options_.learningRate.at(iteration, epoch_);
  progress_.epoch = epoch_;
  progress_.iteration = iteration;
  progress_.rounds = rounds_ + (options_.resumed.rounds ? options_.resumed.rounds->rounds : 0);
  progress_.score = result_.score;
  progress_.learningRate = learningRate;
  progress_.inFlight = flights_.inFlight();
  plan_ = callStrategy("plan a round", [&] { return strategy_.plan(progress_); });
  requirePlan();
}

void Rounds::merge(const Participant& who) {
  who.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  if (contributions_[at(who)].staged) {
    bytes_[at(who)] = 0;  // there is no other worker
    who.exchange.takeStaged();
  } else {
    who.exchange.begin(who.worker);
    Verbs verbs(who.exchange, who.worker, who.context,
                arrivals_ ? Verbs::Waiting::NoSums : Verbs::Waiting::Any);
    try {
      flights_.call(strategy_, round(), verbs);
    } catch (...) {
      mergeFailed_ = true;
      throw;
    }
    bytes_[at(who)] = verbs.bytes();
    who.exchange.end(who.worker);
  }
  const auto time = Clock::now() - begin;
  who.times.own.merging += time;
  mergeTimes_[at(who)] = time + std::exchange(contributionTimes_[at(who)], std::chrono::nanoseconds(0));
}

Round Rounds::round() const {
  return {.weights = weights_,
          .iteration = result_.iteration,
          .planned = plan_.iterations,
          .last = result_.verdict != Verdict::Continue,
          .measured = measured_,
          .arrivals = arrivals_ ? arrivals_->landing() : std::span<const Arrival>()};
}

bool Rounds::awaitReduced(const Participant& who) {
  who.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  // After this barrier each worker updates its replica, even if another worker fails.
  const bool together = reduced_.arrive([this] { committed_ = true; });
  who.times.own.waitingForWorkers += Clock::now() - begin;
  if (!together) return false;
  who.exchange.follow(who.worker, who.context);
  Verbs verbs(who.exchange, who.worker, who.context);
  try {
    strategy_.afterReduction(round(), verbs);
  } catch (...) {
    mergeFailed_ = true;
    throw;
  }
  bytes_[at(who)] += verbs.bytes();
  who.exchange.end(who.worker);
  return true;
}

void Rounds::addPenalty(double penalty) {
  // The penalty is the same for all workers: the first adds it. No other thread uses these fields now.
  if (penaltyAdded_.exchange(true)) return;
  result_.score += penalty;
  result_.scoreSumInEpoch += penalty * result_.weight;
}

RoundEnd Rounds::leave(const Participant& who) {
  who.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  who.times.publish();  // so that listeners of this round see the times
  // With gradients the replica has been updated, and the coordinator may look at it.
  if (localWork() == LocalWork::Gradient) who.exchange.arrive(who.worker, who.context);
  const bool joined = result_.joinedByCoordinator;
  bool together = (joined ? merged_ : mergedAlone_).arrive([this] { planNextRound(); });
  const RoundEnd end = together ? result_.end() : RoundEnd{};  // now: a landing may change it later
  if (together) who.exchange.follow(who.worker, who.context);
  if (together && joined) together = awaitResume(who.worker);
  who.times.own.waitingForWorkers += Clock::now() - begin;
  return together ? end : RoundEnd{};
}

bool Rounds::awaitResume(int worker) {
  while (resumed_.arrive()) {
    if (!task_) return true;
    task_(place_.localOf(worker));
    if (!merged_.arrive()) return false;
  }
  return false;
}

Verdict Rounds::arrive(const Participant& who, const Contribution& contribution) {
  who.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  const auto merged = who.times.own.merging;
  const bool passed = gate_->pass(
      who.worker,
      [&] {
        contributions_[at(who)] = contribution;
        if (onWallClock()) arrivals_->arrive(who.worker);
        who.exchange.arrive(who.worker, who.context);
      },
      [&] { return land(who); }, [&] { who.exchange.follow(who.worker, who.context); });
  who.times.own.waitingForWorkers += Clock::now() - begin - (who.times.own.merging - merged);
  who.times.publish();
  return passed ? Verdict::WentOn : Verdict::Aborted;
}

std::span<const Arrival> Rounds::land(const Participant& who) {
  who.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  plan(/*met=*/false);
  const FirstDoesAll first(who.exchange);
  try {
    who.exchange.begin(0);
    Verbs verbs(who.exchange, 0, who.context, Verbs::Waiting::NoSums);
    flights_.call(strategy_, round(), verbs);
    who.exchange.end(0);
  } catch (...) {
    mergeFailed_ = true;
    throw;
  }
  planNextRound();
  who.times.own.merging += Clock::now() - begin;
  who.activity.set(Activity::Kind::WaitingForWorkers);
  return arrivals_->landing();
}

}  // namespace muster
