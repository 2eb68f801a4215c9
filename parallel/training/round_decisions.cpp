#include "muster/parallel/training/round_decisions.h"

#include <algorithm>
#include <utility>

namespace muster {

RoundDecisions::RoundDecisions(const NodePlace& place, const RoundOptions& options, Ledger start,
                               MergeShares& shares)
    : fragments_(options.traits.fragments),
      strategy_(options.strategy),
      shares_(shares),
      start_(std::move(start)),
      landsAlone_(start_.arrivals && !options.meetAtLandings && start_.landingsBefore == 0),
      transaction_(start_),
      messages_(place),
      plans_(options.strategy, shares.localWork(), options.learningRate) {
  // Scores of workers that arrive in a later landing.
  for (const Tally& worker : start_.workers) contributions_.push_back(worker.unmerged);
}

void RoundDecisions::prepare() {
  transaction_.begin(fragments_);
  if (isResumed()) plans_.requireSaved(ledger().plan);
}

void RoundDecisions::begin(std::int64_t epochs) {
  lastEpoch_ = start_.epoch + epochs - 1;
  if (!isResumed()) planNext();
}

void RoundDecisions::arrive(int worker, const Contribution& mine) {
  of(worker) = mine;
  Ledger& now = transaction_.ledger();
  now.workers[static_cast<std::size_t>(worker)].unmerged = mine;
  if (now.arrivals->onWallClock()) now.arrivals->arrive(worker);
}

const Votes& RoundDecisions::agree(Exchange& exchange, const Votes& own) {
  votes_ = messages_.agree(exchange, contributions_, own);
  return votes_;
}

void RoundDecisions::decide(RoundFacts facts) {
  shares_.keepLast(std::ranges::max(contributions_, {}, &Contribution::largest).largest, landsAlone_);
  facts.pending = strategy_.pending();
  transaction_.decide(contributions_, votes_, facts);
  shares_.begin();
  if (result().merging) strategy_.prepare(decision().call());
  if (!result().merging || (shares_.localWork() == LocalWork::Step && decision().scored))
    transaction_.allCarryOut();
}

void RoundDecisions::commit() {
  transaction_.commit(contributions_, shares_.penalty());
  planNext();
}

bool RoundDecisions::isOver() const {
  return endsRun(result().verdict) ||
         (result().verdict == Verdict::EpochOver && result().epoch == lastEpoch_);
}

void RoundDecisions::loseMerge() {
  shares_.lose();
  transaction_.revoke();
}

}  // namespace muster
