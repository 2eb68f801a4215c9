#include "muster/parallel/training/fit_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster {

using Clock = std::chrono::steady_clock;

FitRun::FitRun(int workers, std::span<const std::unique_ptr<Batch>> batches, Strategy& strategy,
               std::atomic<bool>& stop, bool coordinatorJoinsEveryMeeting, std::int64_t firstIteration,
               std::int64_t firstEpoch, Exchange* exchange, std::chrono::nanoseconds patience)
    : strategy_(strategy),
      exchange_(exchange),
      stop_(stop),
      coordinatorJoinsEveryMeeting_(coordinatorJoinsEveryMeeting),
      firstIteration_(firstIteration),
      firstEpoch_(firstEpoch),
      free_(batches.size()),
      peers_(workers),
      gather_(workers, patience),
      reduced_(workers, patience),
      mergedAlone_(workers, patience),
      merged_(workers + 1),
      resumed_(workers + 1),
      contributions_(workers),
      weights_(workers),
      contributionTimes_(workers),
      mergeTimes_(workers),
      bytes_(workers),
      epoch_(firstEpoch),
      epochFirstIteration_(firstIteration) {
  for (const auto& batch : batches) free_.push(batch.get());
  // One place more than there are batches: the null that ends an epoch never waits behind them.
  for (int w = 0; w < workers; ++w)
    queues_.push_back(std::make_unique<BoundedQueue<Batch*>>(batches.size() + 1));
  quota_ = strategy_.iterationsUntilMeeting({.epoch = firstEpoch, .iteration = firstIteration});
}

void FitRun::plan() {
  Meeting next{.epoch = epoch_};
  next.joinedByCoordinator = coordinatorJoinsEveryMeeting_;
  const bool fresh = meeting_.verdict == Verdict::EpochOver;  // the meeting before ended an epoch
  if (!fresh) {
    next.batchesInEpoch = meeting_.batchesInEpoch;
    next.examplesInEpoch = meeting_.examplesInEpoch;
    next.scoreSumInEpoch = meeting_.scoreSumInEpoch;
    next.weightInEpoch = meeting_.weightInEpoch;
  }
  double scoreSum = 0, weight = 0;
  std::int64_t batches = 0, iterations = 0;
  bool allEnded = true, onItsWay = false;
  for (const auto& c : contributions_) {  // in worker order: the sums' bits depend on nothing else
    scoreSum += c.scoreSum;
    weight += c.weight;
    batches += c.batches;
    next.examples += c.examples;
    iterations = std::max(iterations, c.epochIterations);
    allEnded = allEnded && c.ended;
    onItsWay = onItsWay || c.staged;
  }
  require(std::isfinite(weight), "the weights of the workers' batches add up to {}", weight);
  // Steps whose examples were all masked still moved the parameters (decay, momentum): they count by batches.
  for (std::size_t w = 0; w < weights_.size(); ++w)
    weights_[w] = weight > 0 ? contributions_[w].weight : static_cast<double>(contributions_[w].batches);
  next.weight = weight;
  next.score = weight > 0 ? scoreSum / weight : batches > 0 ? 0 : meeting_.score;
  next.batchesInEpoch += batches;
  next.examplesInEpoch += next.examples;
  next.scoreSumInEpoch += scoreSum;
  next.weightInEpoch += weight;
  next.iteration = epochFirstIteration_ + iterations;
  next.verdict = onItsWay   ? Verdict::Continue
                 : stop_    ? Verdict::Stop
                 : allEnded ? Verdict::EpochOver
                            : Verdict::Continue;
  if (next.verdict != Verdict::Continue) next.joinedByCoordinator = true;
  next.merging = batches > 0 || (next.verdict != Verdict::Continue && strategy_.pending());
  next.merges = meeting_.merges + (next.merging ? 1 : 0);
  if (next.verdict == Verdict::EpochOver) {
    ++epoch_;
    epochFirstIteration_ = next.iteration;
    peers_.beginAll();  // everyone is here, so nobody is there
  }
  previous_ = meeting_;
  penaltyAdded_ = false;
  meeting_ = next;
  settled_ = !next.merging || strategy_.localWork() == LocalWork::Step;
  quota_ = strategy_.iterationsUntilMeeting(
      {.epoch = epoch_, .iteration = next.iteration, .meetings = ++meetings_, .score = next.score});
}

bool FitRun::stage(const Participant& who) {
  if (coordinatorJoinsEveryMeeting_) return false;  // it looks at the replica as the round has left it
  who.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  const bool staged = strategy_.stage(who.exchange, who.context);
  who.times.own.merging += Clock::now() - begin;
  return staged;
}

void FitRun::contribute(const Participant& who, double weight) {
  who.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  strategy_.contribute(who.worker, weight, who.exchange, who.context);
  contributionTimes_[who.worker] = Clock::now() - begin;
  who.times.own.merging += contributionTimes_[who.worker];
}

bool FitRun::gather(const Participant& who, const Contribution& contribution) {
  who.activity.set(Activity::Kind::WaitingForWorkers);
  const auto arrived = Clock::now();
  contributions_[who.worker] = contribution;
  who.exchange.arrive(who.worker, who.context);
  const bool together = gather_.arrive([this] { plan(); });
  who.times.own.waitingForWorkers += Clock::now() - arrived;
  return together;
}

void FitRun::reduce(const Participant& who) {
  who.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  if (contributions_[who.worker].staged) {
    bytes_[who.worker] = 0;  // nobody is there to be sent any
    who.exchange.takeStaged();
  } else {
    who.exchange.begin(who.worker);
    bytes_[who.worker] = strategy_.meet(who.worker, round(), who.exchange, who.context);
    who.exchange.end(who.worker);
  }
  const auto time = Clock::now() - begin;
  who.times.own.merging += time;
  mergeTimes_[who.worker] = time + std::exchange(contributionTimes_[who.worker], std::chrono::nanoseconds(0));
}

Round FitRun::round() const {
  return {
      .weights = weights_, .iteration = meeting_.iteration, .last = meeting_.verdict != Verdict::Continue};
}

bool FitRun::awaitReduced(const Participant& who) {
  who.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  // From here on every replica is updated, whatever happens to the others.
  const bool together = reduced_.arrive([this] { settled_ = true; });
  who.times.own.waitingForWorkers += Clock::now() - begin;
  if (!together) return false;
  who.exchange.follow(who.worker, who.context);
  bytes_[who.worker] += strategy_.settle(who.worker, round(), who.exchange, who.context);
  who.exchange.end(who.worker);
  return true;
}

void FitRun::addPenalty(double penalty) {
  // The same for all: whoever is first adds it, and nobody else touches these two now.
  if (penaltyAdded_.exchange(true)) return;
  meeting_.score += penalty;
  meeting_.scoreSumInEpoch += penalty * meeting_.weight;
}

Verdict FitRun::part(const Participant& who) {
  who.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  who.times.publish();  // listeners of this meeting see them
  // With gradients the replica has been updated, and the coordinator may look at it.
  if (strategy_.localWork() == LocalWork::Gradient) who.exchange.arrive(who.worker, who.context);
  const bool joined = meeting_.joinedByCoordinator;
  bool together = (joined ? merged_ : mergedAlone_).arrive();
  if (together) who.exchange.follow(who.worker, who.context);
  if (together && joined) together = awaitResume(who.worker);
  who.times.own.waitingForWorkers += Clock::now() - begin;
  return together ? meeting_.verdict : Verdict::Aborted;
}

bool FitRun::awaitResume(int worker) {
  while (resumed_.arrive()) {
    if (!errand_) return true;
    errand_(worker);
    if (!merged_.arrive()) return false;
  }
  return false;
}

bool FitRun::beginErrand(std::function<void(int)> errand) {
  if (failed_) return false;  // somebody may still be on his way from the last one
  errand_ = std::move(errand);
  return resumed_.arrive();  // a barrier lets all go or none
}

void FitRun::endErrand() {
  if (merged_.arrive()) errand_ = {};
}

std::chrono::nanoseconds FitRun::mergeTime() const {
  return *std::ranges::max_element(mergeTimes_);
}

std::int64_t FitRun::exchangedBytes() const {
  std::int64_t bytes = 0, contributors = 0;
  for (std::size_t w = 0; w < bytes_.size(); ++w) {
    if (bytes_[w] == 0) continue;
    bytes += bytes_[w];
    ++contributors;
  }
  return contributors > 0 ? bytes / contributors : 0;
}

void FitRun::end(std::exception_ptr failure) noexcept {
  {
    std::scoped_lock lock(failureMutex_);
    if (!failure_) failure_ = std::move(failure);
    failed_ = true;
  }
  for (auto* barrier : {&gather_, &reduced_, &mergedAlone_, &merged_, &resumed_}) barrier->abort();
  peers_.abort();
  closeQueues();
  if (exchange_) exchange_->abort();
}

void FitRun::closeQueues() {
  for (auto& queue : queues_) queue->close();
  free_.close();
}

void FitRun::rethrow() const {
  std::scoped_lock lock(failureMutex_);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace muster
