#include "muster/parallel/training/rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::int64_t kMostIterations = std::int64_t{1} << 40;

std::size_t at(const Participant& who) {
  return static_cast<std::size_t>(who.worker);
}

}  // namespace

Rounds::Rounds(int workers, const Options& options, PeerSums& peers)
    : options_(options),
      strategy_(options.strategy),
      peers_(peers),
      gathered_(workers, options.patience),
      reduced_(workers, options.patience),
      mergedAlone_(workers, options.patience),
      merged_(workers + 1),
      resumed_(workers + 1),
      contributions_(static_cast<std::size_t>(workers)),
      contributionTimes_(contributions_.size()),
      mergeTimes_(contributions_.size()),
      bytes_(contributions_.size()),
      weights_(contributions_.size()),
      flights_(contributions_.size()),
      progress_{.workers = workers},
      epoch_(options.firstEpoch) {
  result_.iteration = options.firstIteration;
  if (const auto plan = strategy_.arrivals(workers)) arrivals_.emplace(*plan).beginEpoch();
}

void Rounds::start() {
  flights_.begin(strategy_.fragments());
  planNextRound();
}

bool Rounds::stage(const Participant& who) {
  if (contributions_.size() > 1 || arrivals_) return false;
  if (options_.coordinatorJoinsEveryRound) return false;  // it looks at the replica as the round has left it
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
  Verbs verbs(who.exchange, who.worker, who.context);
  strategy_.contribute(weight, verbs);
  contributionTimes_[at(who)] = Clock::now() - begin;
  who.times.own.merging += contributionTimes_[at(who)];
}

bool Rounds::gather(const Participant& who, const Contribution& contribution) {
  const auto arrived = Clock::now();  // before the activity: who sees it knows that the wait is timed
  who.activity.set(Activity::Kind::WaitingForWorkers);
  contributions_[at(who)] = contribution;
  who.exchange.arrive(who.worker, who.context);
  const bool together = gathered_.arrive([this] { plan(); });
  who.times.own.waitingForWorkers += Clock::now() - arrived;
  return together;
}

void Rounds::plan() {
  previous_ = std::exchange(result_, nextResult());
  ++rounds_;
  committed_ = false;  // until nothing can fail here any more
  if (result_.verdict == Verdict::EpochOver) {
    ++epoch_;
    peers_.beginAll();  // all workers are at the barrier, none inside a step
  }
  penaltyAdded_ = false;
  flights_.endRound(plan_, round(), strategy_.pending());
  if (result_.merging) strategy_.prepare(round());
  committed_ = !result_.merging || localWork() == LocalWork::Step;
}

RoundResult Rounds::nextResult() {
  RoundResult next{.joinedByCoordinator = options_.coordinatorJoinsEveryRound, .epoch = epoch_};
  if (result_.verdict != Verdict::EpochOver) {  // the epoch goes on
    next.batchesInEpoch = result_.batchesInEpoch;
    next.examplesInEpoch = result_.examplesInEpoch;
    next.scoreSumInEpoch = result_.scoreSumInEpoch;
    next.weightInEpoch = result_.weightInEpoch;
  }
  next.verdict = std::ranges::any_of(contributions_, &Contribution::staged)  ? Verdict::Continue
                 : stopAsked()                                               ? Verdict::Stop
                 : std::ranges::all_of(contributions_, &Contribution::ended) ? Verdict::EpochOver
                                                                             : Verdict::Continue;
  const bool last = next.verdict != Verdict::Continue;
  if (last) next.joinedByCoordinator = true;
  if (arrivals_) arrivals_->settle(contributions_, last);
  double scoreSum = 0, weight = 0;
  std::int64_t batches = 0;
  next.iteration = result_.iteration;
  // In worker order: the sums' bits depend on nothing else.
  for (std::size_t w = 0; w < weights_.size(); ++w) {
    if (!landed(static_cast<int>(w))) continue;
    const Contribution& c = contributions_[w];
    scoreSum += c.scoreSum;
    weight += c.weight;
    batches += c.batches;
    next.examples += c.examples;
    next.iteration = std::max(next.iteration, c.iteration);
  }
  require(std::isfinite(weight), "the weights of the workers' batches add up to {}", weight);
  // Steps whose examples were all masked still moved the parameters (decay, momentum): they count by batches.
  for (std::size_t w = 0; w < weights_.size(); ++w) {
    const Contribution& c = contributions_[w];
    weights_[w] = !landed(static_cast<int>(w)) ? 0 : weight > 0 ? c.weight : static_cast<double>(c.batches);
  }
  next.weight = weight;
  next.score = weight > 0 ? scoreSum / weight : batches > 0 ? 0 : result_.score;
  next.batchesInEpoch += batches;
  next.examplesInEpoch += next.examples;
  next.scoreSumInEpoch += scoreSum;
  next.weightInEpoch += weight;
  next.trained = batches > 0;
  next.merging = next.trained || (last && (strategy_.pending() || flights_.outstanding()));
  next.merges = result_.merges + (next.merging ? 1 : 0);
  return next;
}

void Rounds::planNextRound() {
  flights_.commit();
  if (arrivals_) {
    if (result_.verdict == Verdict::EpochOver) arrivals_->beginEpoch();
    arrivals_->planNext();
  }
  const auto values = strategy_.values();
  values_.assign(values.begin(), values.end());  // of the same number each time: allocates once
  const std::int64_t iteration = result_.iteration;
  const double learningRate = options_.learningRate.at(iteration, epoch_);
  progress_.epoch = epoch_;
  progress_.iteration = iteration;
  progress_.rounds = rounds_;
  progress_.score = result_.score;
  progress_.learningRate = learningRate;
  plan_ = strategy_.plan(progress_);
  require(plan_.iterations >= 1, "the strategy's plan: a round must have at least 1 iteration, got {}",
          plan_.iterations);
  require(plan_.iterations <= kMostIterations,
          "the strategy's plan: a round has at most {} iterations, got {}", kMostIterations,
          plan_.iterations);
  require(plan_.iterations == 1 || localWork() == LocalWork::Step,
          "the strategy's plan: a round of gradients has 1 iteration, got {}", plan_.iterations);
}

void Rounds::merge(const Participant& who) {
  who.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  if (contributions_[at(who)].staged) {
    bytes_[at(who)] = 0;  // there is no other worker
    who.exchange.takeStaged();
  } else {
    who.exchange.begin(who.worker);
    Verbs verbs(who.exchange, who.worker, who.context);
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
          .last = result_.verdict != Verdict::Continue,
          .arrivals = arrivals_ ? arrivals_->landing() : std::span<const Arrival>()};
}

bool Rounds::awaitReduced(const Participant& who) {
  who.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  // From here on every replica is updated, whatever happens to the others.
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
  // The same for all: the first one adds it, and no other thread uses these two now.
  if (penaltyAdded_.exchange(true)) return;
  result_.score += penalty;
  result_.scoreSumInEpoch += penalty * result_.weight;
}

Verdict Rounds::leave(const Participant& who) {
  who.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  who.times.publish();  // listeners of this round see them
  // With gradients the replica has been updated, and the coordinator may look at it.
  if (localWork() == LocalWork::Gradient) who.exchange.arrive(who.worker, who.context);
  const bool joined = result_.joinedByCoordinator;
  bool together = (joined ? merged_ : mergedAlone_).arrive([this] { planNextRound(); });
  if (together) who.exchange.follow(who.worker, who.context);
  if (together && joined) together = awaitResume(who.worker);
  who.times.own.waitingForWorkers += Clock::now() - begin;
  return together ? result_.verdict : Verdict::Aborted;
}

bool Rounds::awaitResume(int worker) {
  while (resumed_.arrive()) {
    if (!task_) return true;
    task_(worker);
    if (!merged_.arrive()) return false;
  }
  return false;
}

bool Rounds::beginTask(std::function<void(int)> task) {
  task_ = std::move(task);
  return resumed_.arrive();  // a barrier lets all pass or none
}

void Rounds::endTask() {
  if (merged_.arrive()) task_ = {};
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

void Rounds::abort() {
  for (auto* barrier : {&gathered_, &reduced_, &mergedAlone_, &merged_, &resumed_}) barrier->abort();
}

}  // namespace muster
