#include "muster/parallel/training/round_transaction.h"

#include <algorithm>

namespace muster {

void RoundTransaction::begin(int fragments) {
  Ledger& first = ledger();
  first.flights.begin(fragments);
  if (first.arrivals) first.arrivals->planNext();
  Decision& next = decisions_[1 - committed_];
  next.after = first;
  for (Decision& decision : decisions_) decision.weights.resize(first.workers.size());
}

void RoundTransaction::decide(std::span<const Contribution> contributions, const Votes& votes,
                              const RoundFacts& facts) {
  stage_ = Stage::Training;
  muster::decide(ledger(), contributions, votes, facts, decisions_[1 - committed_]);
  stage_ = Stage::Decided;
}

void RoundTransaction::commit(std::span<const Contribution> contributions, double penalty) {
  Decision& open = decisions_[1 - committed_];
  if (!open.scored) addScores(open, contributions);
  addPenalty(open, penalty);
  open.after.flights.commit();
  committed_ = 1 - committed_;
  stage_ = Stage::Committed;
  Ledger& now = ledger();
  if (!now.arrivals) return;
  if (now.verdict == Verdict::EpochOver) now.arrivals->beginEpoch(now.iteration, now.epoch);
  now.arrivals->planNext();
}

void RoundTransaction::close(std::span<const Contribution> contributions, double penalty, bool failed) {
  if (!isOpen()) return;
  const bool scoresCame = std::ranges::none_of(contributions, &Contribution::late);
  const bool carriedOut = stage_ == Stage::CarriedOut || (!decision().scored && scoresCame);
  if (carriedOut && !failed) return commit(contributions, penalty);
  stage_ = Stage::Training;
}

void RoundTransaction::revoke() {
  if (stage_ != Stage::Committed) return;
  committed_ = 1 - committed_;
  stage_ = Stage::Training;
}

}  // namespace muster
