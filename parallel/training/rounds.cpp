#include "muster/parallel/training/rounds.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/training/named_call.h"

namespace muster {

using Clock = std::chrono::steady_clock;

namespace {

std::size_t at(const Participant& participant) {
  return static_cast<std::size_t>(participant.worker);
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
      examples_(contributions_.size()),
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

bool Rounds::stage(const Participant& participant) {
  if (contributions_.size() > 1 || arrivals_) return false;
  if (options_.coordinatorJoinsEveryRound) return false;  // the coordinator reads the replica at once
  participant.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  const bool staged = strategy_.stage(participant.exchange, participant.context);
  if (staged && strategy_.updaterState() == UpdaterState::Reset)
    *OwnUpdates::find(participant.exchange, at(participant)) = {.count = 0, .mergedCopyReset = 1};
  participant.times.own.merging += Clock::now() - begin;
  return staged;
}

void Rounds::contribute(const Participant& participant, double weight) {
  if (arrivals_) return;
  participant.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  participant.arriveAtExchange();
  Verbs verbs(participant.exchange, participant.worker, participant.context, Verbs::Waiting::None);
  strategy_.contribute(weight, verbs);
  contributionTimes_[at(participant)] = Clock::now() - begin;
  participant.times.own.merging += contributionTimes_[at(participant)];
}

bool Rounds::gather(const Participant& participant, const Contribution& contribution) {
  const auto arrived = Clock::now();  // before the activity is set: once it is visible, the wait is timed
  participant.activity.set(Activity::Kind::WaitingForWorkers);
  const auto bring = [&] { contributions_[at(participant)] = contribution; };
  gate_ ? gate_->end(participant.worker, bring) : bring();  // a landing worker may be reading them all
  participant.arriveAtExchange();
  if (!gate_) participant.exchange.keep(participant.worker);  // while this worker waits
  const bool together = gathered_.arrive([&] {
    agree(participant.exchange);
    plan(participant.exchange, /*met=*/true);
  });
  participant.times.own.waitingForWorkers += Clock::now() - arrived;
  return together;
}

void Rounds::plan(Exchange& exchange, bool met) {
  keepLastMerge(exchange);
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
  // An arrival without weight lands, too: its worker takes the global parameters.
  const bool lands = arrivals_ && result_.merging;
  flights_.endRound(plan_, round(), lands || strategy_.pending());
  if (result_.merging) strategy_.prepare(round());
  // If a late score turns out not to be finite, nothing was merged.
  committed_ = !result_.merging || (localWork() == LocalWork::Step && !late_);
}

void Rounds::takeScore(const Participant& participant, const Contribution& contribution) {
  contributions_[at(participant)] = contribution;
}

RoundResult Rounds::nextResult(bool met) {
  RoundResult next = result_.next(epoch_);
  next.verdict = !met || std::ranges::any_of(contributions_, &Contribution::staged) ? Verdict::Continue
                 : stopping_ || regrouping_                                         ? Verdict::Stop
                 : std::ranges::all_of(contributions_, &Contribution::ended)        ? Verdict::EpochOver
                                                                                    : Verdict::Continue;
  const bool last = next.verdict != Verdict::Continue;
  next.joinedByCoordinator = last || options_.coordinatorJoinsEveryRound;
  if (arrivals_) arrivals_->chooseLanding(contributions_, last, met);
  const auto landing = arrivals_ ? arrivals_->landing() : std::span<const Arrival>();
  for (std::size_t w = 0; w < landing.size(); ++w)
    if (landing[w].arrives) landed_[w] = 1;
  next.add(contributions_, landing, weights_);
  late_ = std::ranges::any_of(contributions_, &Contribution::late);
  if (!late_) next.addScores(contributions_, landing);
  for (std::size_t w = 0; w < counts_.size(); ++w) {
    if (arrivals_ && !landing[w].arrives) continue;
    counts_[w] += contributions_[w].batches;
    examples_[w] += contributions_[w].examples;
  }
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

void Rounds::merge(const Participant& participant) {
  participant.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  if (contributions_[at(participant)].staged) {
    bytes_[at(participant)] = 0;  // there is no other worker
    participant.exchange.takeStaged();
  } else {
    participant.exchange.begin(participant.worker);
    Verbs verbs(participant.exchange, participant.worker, participant.context,
                arrivals_ ? Verbs::Waiting::NoSums : Verbs::Waiting::Any);
    try {
      flights_.call(strategy_, round(), verbs);
    } catch (...) {
      mergeFailed_ = true;
      throw;
    }
    bytes_[at(participant)] = verbs.bytes();
    participant.exchange.end(participant.worker);
  }
  const auto time = Clock::now() - begin;
  participant.times.own.merging += time;
  mergeTimes_[at(participant)] = time + std::exchange(contributionTimes_[at(participant)], {});
}

Round Rounds::round() const {
  return {.weights = weights_,
          .iteration = result_.iteration,
          .planned = plan_.iterations,
          .last = result_.verdict != Verdict::Continue,
          .measured = measured_,
          .arrivals = arrivals_ ? arrivals_->landing() : std::span<const Arrival>()};
}

bool Rounds::awaitReduced(const Participant& participant) {
  participant.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  // After this barrier each worker updates its replica, even if another worker fails.
  const bool together = reduced_.arrive([this] { committed_ = true; });
  participant.times.own.waitingForWorkers += Clock::now() - begin;
  if (!together) return false;
  participant.enqueueAfterVerbs();
  Verbs verbs(participant.exchange, participant.worker, participant.context);
  try {
    strategy_.afterReduction(round(), verbs);
  } catch (...) {
    mergeFailed_ = true;
    throw;
  }
  bytes_[at(participant)] += verbs.bytes();
  participant.exchange.end(participant.worker);
  return true;
}

void Rounds::addPenalty(double penalty) {
  // The penalty is the same for all workers: the first adds it. No other thread uses these fields now.
  if (penaltyAdded_.exchange(true)) return;
  result_.score += penalty;
  result_.scoreSumInEpoch += penalty * result_.weight;
}

RoundEnd Rounds::leave(const Participant& participant) {
  participant.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  participant.times.publish();  // so that listeners of this round see the times
  // With gradients the replica has been updated, and the coordinator may look at it.
  if (localWork() == LocalWork::Gradient) participant.arriveAtExchange();
  const bool joined = result_.joinedByCoordinator;
  bool together = (joined ? merged_ : mergedAlone_).arrive([this, &participant] {
    planNextRound();
    if (!result_.joinedByCoordinator) answerNodes(participant.exchange);
  });
  const RoundEnd end = together ? result_.end() : RoundEnd{};  // now: a landing may change it later
  if (together) participant.enqueueAfterVerbs();
  if (together && joined) together = awaitResume(participant.worker);
  participant.times.own.waitingForWorkers += Clock::now() - begin;
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

}  // namespace muster
