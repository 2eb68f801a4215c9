// Rounds of rules whose workers arrive one at a time.
#include <utility>

#include "muster/parallel/training/rounds.h"

namespace muster {

using Clock = std::chrono::steady_clock;

Verdict Rounds::arrive(const Participant& participant, const Contribution& contribution) {
  participant.activity.set(Activity::Kind::WaitingForWorkers);
  const auto begin = Clock::now();
  const auto merged = participant.times.own.merging;
  const bool passed = gate_->pass(
      participant.worker,
      [&] {
        contributions_[static_cast<std::size_t>(participant.worker)] = contribution;
        if (onWallClock()) arrivals_->arrive(participant.worker);
        participant.arriveAtExchange();
      },
      [&] { return land(participant); }, [&] { participant.enqueueAfterVerbs(); });
  participant.times.own.waitingForWorkers += Clock::now() - begin - (participant.times.own.merging - merged);
  participant.times.publish();
  return passed ? Verdict::WentOn : Verdict::Aborted;
}

std::span<const Arrival> Rounds::land(const Participant& participant) {
  participant.activity.set(Activity::Kind::Merging);
  const auto begin = Clock::now();
  plan(participant.exchange, /*met=*/false);
  const FirstDoesAll first(participant.exchange);
  try {
    participant.exchange.begin(0);
    Verbs verbs(participant.exchange, 0, participant.context, Verbs::Waiting::NoSums);
    flights_.call(strategy_, round(), verbs);
    participant.exchange.end(0);
  } catch (...) {
    mergeFailed_ = true;
    throw;
  }
  planNextRound();
  participant.times.own.merging += Clock::now() - begin;
  participant.activity.set(Activity::Kind::WaitingForWorkers);
  return arrivals_->landing();
}

}  // namespace muster
