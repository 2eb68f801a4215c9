#include "muster/parallel/training/rounds.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/parallel/runtime/phase.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/training/named_call.h"

namespace muster {

namespace {

/// @throws InvalidArgument if the plan of a round is impossible.
void requirePlan(const RoundPlan& plan, LocalWork work) {
  require(plan.iterations >= 1, "the strategy's plan: a round must have at least 1 iteration, got {}",
          plan.iterations);
  require(plan.iterations <= detail::kMostIterations,
          "the strategy's plan: a round has at most {} iterations, got {}", detail::kMostIterations,
          plan.iterations);
  require(plan.iterations == 1 || work == LocalWork::Step,
          "the strategy's plan: a round of gradients has 1 iteration, got {}", plan.iterations);
}

}  // namespace

Rounds::Rounds(const NodePlace& place, const Options& options, Ledger start, PeerSums& peers)
    : place_(place),
      options_(options),
      strategy_(options.strategy),
      peers_(peers),
      start_(std::move(start)),
      gathered_(place.local, options.patience),
      reduced_(place.local, options.patience),
      mergedAlone_(place.local, options.patience),
      merged_(place.local + 1),
      resumed_(place.local + 1),
      contributions_(static_cast<std::size_t>(place.workers())),
      work_(contributions_.size()),
      transaction_(start_),
      messages_(place) {
  for (std::size_t w = 0; w < contributions_.size(); ++w)
    contributions_[w] = start_.workers[w].unmerged;  // of workers that arrive in a later landing
  if (start_.arrivals && !options.meetAtLandings && start_.landingsBefore == 0)
    gate_.emplace(
        place.workers(), [this] { return ledger().arrivals->next(); }, onWallClock());
}

void Rounds::prepare() {
  transaction_.begin(options_.traits.fragments);
  if (!isResumed()) return;
  try {
    requirePlan(ledger().plan, localWork());
  } catch (const InvalidArgument& error) {
    throw SavedStateError(fmt::format("training state: {}", error.what()));
  }
}

void Rounds::planFirst() {
  if (!isResumed()) planNext();
}

void Rounds::contribute(const Participant& participant, double weight) {
  if (start_.arrivals) return;
  std::chrono::nanoseconds& merging = participant.times.own.merging;
  const auto before = merging;
  {
    const Phase phase(participant.activity, Activity::Kind::Merging, merging);
    participant.arriveAtExchange();
    Verbs verbs(participant.exchange, participant.worker, participant.context, Verbs::Waiting::None);
    strategy_.contribute(weight, verbs);
  }
  work_[at(participant)].contributing = merging - before;
}

bool Rounds::gather(const Participant& participant, const Contribution& contribution) {
  const Phase waiting(participant.activity, Activity::Kind::WaitingForWorkers,
                      participant.times.own.waitingForWorkers);
  const auto bring = [&] { contributions_[at(participant)] = contribution; };
  gate_ ? gate_->end(participant.worker, bring) : bring();  // a landing worker may be reading them all
  participant.arriveAtExchange();
  if (!gate_) participant.exchange.keep(participant.worker);  // while this worker waits
  return gathered_.arrive([&] {
    agree(participant.exchange);
    decide(participant.exchange, /*met=*/true);
  });
}

/// Sends contributions and votes to every node, so that all nodes make the same decision.
void Rounds::agree(Exchange& exchange) {
  votes_ = {.stop = stopAsked(),
            .pause = options_.regroup != nullptr && *options_.regroup,
            .listens = options_.coordinatorJoinsEveryRound,
            .measures = options_.divergenceRead};
  if (place_.nodes == 1) return;
  exchange.gather(messages_.write(contributions_, votes_), messages_.room());
  votes_ = messages_.read(contributions_);
  if (votes_.stop) options_.stop = true;
}

void Rounds::decide(Exchange& exchange, bool met) {
  keepLastMerge(exchange);
  transaction_.decide(contributions_, votes_, {.met = met, .pending = strategy_.pending()});
  const Decision& decision = transaction_.decision();
  if (decision.round.verdict == Verdict::EpochOver)
    peers_.beginAll();  // all workers are at the barrier, none inside a step
  landingDue_ = false;
  for (MergeWork& work : work_) work.penalty.reset();
  if (decision.round.merging) strategy_.prepare(decision.call());
  if (!decision.round.merging || (localWork() == LocalWork::Step && decision.scored))
    transaction_.allCarryOut();
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

void Rounds::merge(const Participant& participant) {
  MergeWork& work = work_[at(participant)];
  std::chrono::nanoseconds& merging = participant.times.own.merging;
  const auto before = merging;
  {
    const Phase phase(participant.activity, Activity::Kind::Merging, merging);
    participant.exchange.begin(participant.worker);
    Verbs verbs(participant.exchange, participant.worker, participant.context,
                start_.arrivals ? Verbs::Waiting::NoSums : Verbs::Waiting::Any);
    const Decision& decision = transaction_.decision();
    orLoseMerge([&] { decision.after.flights.call(strategy_, decision.call(), verbs); });
    work.bytes = verbs.bytes();
    participant.exchange.end(participant.worker);
  }
  work.merging = merging - before + std::exchange(work.contributing, {});
}

bool Rounds::awaitReduced(const Participant& participant) {
  {
    const Phase waiting(participant.activity, Activity::Kind::WaitingForWorkers,
                        participant.times.own.waitingForWorkers);
    // After this barrier each worker updates its replica, even if another worker fails.
    if (!reduced_.arrive([this] { transaction_.allCarryOut(); })) return false;
  }
  participant.enqueueAfterVerbs();
  Verbs verbs(participant.exchange, participant.worker, participant.context);
  orLoseMerge([&] { strategy_.afterReduction(transaction_.decision().call(), verbs); });
  work_[at(participant)].bytes += verbs.bytes();
  participant.exchange.end(participant.worker);
  return true;
}

RoundEnd Rounds::leave(const Participant& participant) {
  const Phase waiting(participant.activity, Activity::Kind::WaitingForWorkers,
                      participant.times.own.waitingForWorkers);
  participant.times.publish();  // so that listeners of this round see the times
  // With gradients the replica has been updated, and the coordinator may look at it.
  if (localWork() == LocalWork::Gradient) participant.arriveAtExchange();
  const bool joins = joined();
  // Two pointers: a std::function keeps no more without an allocation.
  bool together = (joins ? merged_ : mergedAlone_).arrive([this, &participant] {
    commit();
    if (!joined()) answerNodes(participant.exchange);
  });
  if (!together) return {};
  const RoundEnd end = endFor(ledger(), participant.worker);
  participant.enqueueAfterVerbs();
  return joins && !awaitResume(participant.worker) ? RoundEnd{} : end;
}

/// The penalty is the same for all workers that have updated their replicas.
double Rounds::penalty() const {
  const auto updated = std::ranges::find_if(work_, [](const MergeWork& w) { return w.penalty.has_value(); });
  return updated == work_.end() ? 0 : *updated->penalty;
}

void Rounds::commit() {
  transaction_.commit(contributions_, penalty());
  if (gate_ && ledger().verdict == Verdict::EpochOver) gate_->beginEpoch();
  planNext();
}

void Rounds::planNext() {
  report_ = strategy_.report();
  values_.assign(report_.values.begin(), report_.values.end());  // as many every time: allocates once
  report_.values = values_;
  const auto progress = muster::progress(ledger(), options_.learningRate);
  const RoundPlan plan = callStrategy("plan a round", [&] { return strategy_.plan(progress); });
  requirePlan(plan, localWork());
  transaction_.ledger().plan = plan;
}

RoundEnd Rounds::endFor(const Ledger& now, int worker) const {
  return {.verdict = now.verdict,
          .iteration = now.iteration,
          .epoch = now.epoch,
          .iterations = iterations(now, worker, gate_.has_value()),
          .merged = now.workers[static_cast<std::size_t>(worker)].unmerged.batches == 0};
}

bool Rounds::awaitResume(int worker) {
  while (resumed_.arrive()) {
    if (!task_) return true;
    task_(place_.localOf(worker));
    if (!merged_.arrive()) return false;
  }
  return false;
}

void Rounds::noteArrival(int worker, const Contribution& contribution) {
  if (gate_ || !onWallClock()) return;
  if (contribution.ended || ledger().arrivals->hasArrived(worker, contribution.batches)) landingDue_ = true;
}

std::chrono::nanoseconds Rounds::mergeTime() const {
  return std::ranges::max(work_, {}, &MergeWork::merging).merging;
}

std::int64_t Rounds::bytes() const {
  std::int64_t bytes = 0, contributors = 0;
  for (const MergeWork& work : work_) {
    bytes += work.bytes;
    contributors += work.bytes > 0 ? 1 : 0;
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

void Rounds::refuseUpdate() {
  auto none = Loss::None;
  loss_.compare_exchange_strong(none, Loss::Update);  // a failed merge needs more to be undone
}

void Rounds::abort() {
  for (auto* barrier : {&gathered_, &reduced_, &mergedAlone_, &merged_, &resumed_}) barrier->abort();
  if (gate_) gate_->abort();
}

void Rounds::close() {
  transaction_.close(contributions_, penalty(), loss_ != Loss::None);
}

void Rounds::loseMerge() {
  loss_ = Loss::Merge;
  transaction_.revoke();
}

}  // namespace muster
