// Rounds of rules whose workers arrive one at a time.
#include "muster/parallel/training/rounds.h"

namespace muster {

using Clock = std::chrono::steady_clock;

RoundEnd Rounds::arrive(const Participant& participant, const Contribution& contribution) {
  participant.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  const auto merged = participant.times.own.merging;
  const auto enter = [&] {
    contributions_[at(participant)] = contribution;
    Ledger& now = transaction_.ledger();
    now.workers[at(participant)].unmerged = contribution;
    if (onWallClock()) now.arrivals->arrive(participant.worker);
    participant.arriveAtExchange();
  };
  RoundEnd end;
  const auto leave = [&] {
    participant.enqueueAfterVerbs();
    end = endFor(ledger(), participant.worker);
  };
  const bool passed = gate_->pass(
      participant.worker, enter, [&] { return land(participant); }, leave);
  participant.times.own.waitingForWorkers += Clock::now() - begin - (participant.times.own.merging - merged);
  participant.times.publish();
  end.verdict = passed ? Verdict::Resumed : Verdict::Aborted;
  return end;
}

std::span<const Arrival> Rounds::land(const Participant& participant) {
  participant.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  decide(participant.exchange, /*met=*/false);
  const FirstDoesAll first(participant.exchange);
  const Decision& decision = transaction_.decision();
  orLoseMerge([&] {
    participant.exchange.begin(0);
    Verbs verbs(participant.exchange, 0, participant.context, Verbs::Waiting::NoSums);
    decision.after.flights.call(strategy_, decision.call(), verbs);
    participant.exchange.end(0);
  });
  commit();
  participant.times.own.merging += Clock::now() - begin;
  participant.activity.set(Activity::Kind::WaitingForWorkers);
  return ledger().arrivals->landing();
}

}  // namespace muster
