#include "muster/parallel/training/round_decisions.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/training/named_call.h"

namespace muster {
namespace {

/// Why a plan is impossible; "": it is not.
std::string problemOf(const RoundPlan& plan, LocalWork work) {
  const auto n = plan.iterations;
  if (n < 1) return fmt::format("the strategy's plan: a round must have at least 1 iteration, got {}", n);
  if (n > detail::kMostIterations)
    return fmt::format("the strategy's plan: a round has at most {} iterations, got {}",
                       detail::kMostIterations, n);
  if (n > 1 && work == LocalWork::Gradient)
    return fmt::format("the strategy's plan: a round of gradients has 1 iteration, got {}", n);
  return {};
}

}  // namespace

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

RoundDecisions::RoundDecisions(const NodePlace& place, const RoundOptions& options, Ledger start,
                               MergeShares& shares)
    : options_(options),
      shares_(shares),
      start_(std::move(start)),
      landsAlone_(start_.arrivals && !options.meetAtLandings && start_.landingsBefore == 0),
      transaction_(start_),
      messages_(place) {
  // Scores of workers that arrive in a later landing.
  for (const Tally& worker : start_.workers) contributions_.push_back(worker.unmerged);
}

void RoundDecisions::prepare() {
  transaction_.begin(options_.traits.fragments);
  if (!isPlanned(start_)) return;
  const std::string problem = problemOf(ledger().plan, shares_.localWork());
  requireSaved(problem.empty(), "training state: {}", problem);
}

void RoundDecisions::begin(std::int64_t epochs) {
  lastEpoch_ = start_.epoch + epochs - 1;
  if (!isPlanned(start_)) planNext();
}

void RoundDecisions::planNext() {
  report_ = options_.strategy.report();
  values_.assign(report_.values.begin(), report_.values.end());  // as many every time: allocates once
  report_.values = values_;
  const auto progress = muster::progress(ledger(), options_.learningRate);
  const RoundPlan plan = callStrategy("plan a round", [&] { return options_.strategy.plan(progress); });
  const std::string problem = problemOf(plan, shares_.localWork());
  require(problem.empty(), "{}", problem);
  transaction_.ledger().plan = plan;
}

void RoundDecisions::arrive(int worker, const Contribution& mine) {
  of(worker) = mine;
  Ledger& now = transaction_.ledger();
  now.workers[static_cast<std::size_t>(worker)].unmerged = mine;
  if (now.arrivals->onWallClock()) now.arrivals->arrive(worker);
}

const Votes& RoundDecisions::agree(Exchange& exchange, const Votes& own) {
  votes_ = own;
  if (exchange.nodes() > 1) {
    exchange.allGather(messages_.write(contributions_, own), messages_.room());
    votes_ = messages_.read(contributions_);
  }
  return votes_;
}

void RoundDecisions::decide(bool met) {
  shares_.keepLast(std::ranges::max(contributions_, {}, &Contribution::largest).largest, landsAlone_);
  transaction_.decide(contributions_, votes_, {.met = met, .pending = options_.strategy.pending()});
  shares_.begin();
  if (result().merging) options_.strategy.prepare(decision().call());
  if (!result().merging || (shares_.localWork() == LocalWork::Step && decision().scored))
    transaction_.allCarryOut();
}

void RoundDecisions::commit() {
  transaction_.commit(contributions_, shares_.penalty());
  planNext();
}

bool RoundDecisions::isOver() const {
  return endsRun(verdict()) || (verdict() == Verdict::EpochOver && result().epoch == lastEpoch_);
}

void RoundDecisions::loseMerge() {
  shares_.lose();
  transaction_.revoke();
}

}  // namespace muster
