#include "muster/parallel/training/ledger.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {
namespace {

bool isMerged(std::span<const Arrival> landing, std::size_t worker) {
  return landing.empty() || landing[worker].arrives;
}

std::span<const Arrival> landingOf(const Ledger& ledger) {
  return ledger.arrivals ? ledger.arrivals->landing() : std::span<const Arrival>();
}

Verdict verdictOf(std::span<const Contribution> contributions, const Votes& votes, bool met) {
  if (!met) return Verdict::Continue;
  if (votes.stop) return Verdict::Stop;
  if (std::ranges::all_of(contributions, &Contribution::ended)) return Verdict::EpochOver;
  return votes.pause ? Verdict::Pause : Verdict::Continue;
}

/// Adds the contributions that are merged, in worker order, except their scores.
void addContributions(Decision& into, std::span<const Contribution> contributions, bool met) {
  const auto landing = landingOf(into.after);
  RoundResult& round = into.round;
  std::int64_t batches = 0;
  for (std::size_t w = 0; w < contributions.size(); ++w) {
    const Contribution& c = contributions[w];
    Tally& worker = into.after.workers[w];
    worker.untrained = c.untrained;
    if (!isMerged(landing, w)) {
      if (met) worker.unmerged = c;
      continue;
    }
    worker.batches += c.batches;
    worker.examples += c.examples;
    worker.unmerged = {};
    round.weight += c.weight;
    batches += c.batches;
    round.examples += c.examples;
    into.after.iteration = std::max(into.after.iteration, c.iteration);
  }
  require(std::isfinite(round.weight), "the weights of the workers' batches add up to {}", round.weight);
  // Steps on fully masked examples still change the parameters (decay, momentum). If there are no others,
  // the number of batches is the weight. Among arrivals they have no weight: others land without them.
  const bool weighted = round.weight > 0 || !landing.empty();
  for (std::size_t w = 0; w < contributions.size(); ++w) {
    const Contribution& c = contributions[w];
    into.weights[w] = !isMerged(landing, w) ? 0 : weighted ? c.weight : static_cast<double>(c.batches);
  }
  round.trained = batches > 0;
  round.inEpoch.batches += batches;
  round.inEpoch.examples += round.examples;
  round.inEpoch.weight += round.weight;
}

void keepSums(Decision& decision) {
  const bool over = decision.after.verdict == Verdict::EpochOver;
  decision.after.inEpoch = over ? EpochSums{} : decision.round.inEpoch;
}

void beginEpoch(Ledger& ledger) {
  ++ledger.epoch;
  ledger.epochIteration = ledger.iteration;
  ledger.begun = {};
  ledger.landingsBefore = 0;
  for (Tally& worker : ledger.workers) worker.batches = 0;
}

}  // namespace

Ledger ledgerAt(const EpochPosition& position, std::int64_t iteration, std::int64_t epoch, int workers) {
  const auto trained = position.nextBatch + static_cast<std::int64_t>(position.trainedLater.size());
  return {.epoch = epoch,
          .iteration = iteration,
          .epochIteration = iteration,
          .score = position.score,
          .begun = position,
          .inEpoch = {trained, position.examples, position.scoreSum, position.weight},
          .workers = std::vector<Tally>(static_cast<std::size_t>(workers)),
          .flights = FragmentFlights(static_cast<std::size_t>(workers))};
}

bool isPlanned(const Ledger& saved) {
  return saved.flights.fragments() > 0;
}

void resume(Ledger& ledger, const Ledger& saved) {
  for (std::size_t w = 0; w < saved.workers.size(); ++w)
    ledger.workers[w].examples = saved.workers[w].examples;
  if (!isPlanned(saved)) return;
  ledger.roundsBefore = saved.roundsBefore;
  ledger.plan = saved.plan;
  ledger.flights = saved.flights;
  ledger.landingsBefore = saved.landingsBefore;
  if (saved.landingsBefore == 0) return;
  ledger.epochIteration = saved.epochIteration;
  for (std::size_t w = 0; w < ledger.workers.size(); ++w) {
    const Contribution& unmerged = ledger.workers[w].unmerged = saved.workers[w].unmerged;
    ledger.workers[w].batches -= unmerged.batches;  // they count once they are merged
    ledger.inEpoch.batches -= unmerged.batches;
    ledger.inEpoch.examples -= unmerged.examples;
  }
}

void setArrivals(Ledger& ledger, const ArrivalPlan& plan, const Schedule& learningRate) {
  requireArrivals(plan, static_cast<int>(ledger.workers.size()));
  ledger.arrivals.emplace(plan, learningRate)
      .beginEpoch(ledger.epochIteration, ledger.epoch, ledger.landingsBefore);
}

std::int64_t landings(const Ledger& ledger) {
  if (!ledger.arrivals) return ledger.landingsBefore;
  return ledger.verdict == Verdict::Continue ? ledger.arrivals->landings() : 0;
}

bool anyInFlight(const Ledger& ledger) {
  return !ledger.flights.inFlight().empty() || landings(ledger) > 0;
}

std::int64_t iterations(const Ledger& ledger, int worker, bool alone) {
  if (!ledger.arrivals) return ledger.plan.iterations;
  if (alone) return ledger.arrivals->iterations(worker);
  return ledger.arrivals->untilLanding(worker,
                                       ledger.workers[static_cast<std::size_t>(worker)].unmerged.batches);
}

namespace {

/// Which batches of the epoch are trained, for a rule with arrivals.
EpochPosition trainedWithArrivals(const Ledger& ledger) {
  std::int64_t trained = 0;
  std::vector<std::int64_t> counts, untrained;
  for (const Tally& worker : ledger.workers) {
    counts.push_back(worker.batches);
    trained += worker.batches + worker.unmerged.batches;
    if (worker.untrained >= 0) untrained.push_back(worker.untrained);
  }
  if (!endsRun(ledger.verdict)) return ledger.begun.after(std::span(&trained, 1));
  if (ledger.arrivals->onWallClock())
    return afterTaking(ledger.begun, trained + static_cast<std::int64_t>(untrained.size()), untrained);
  ArrivalOrder order = ledger.arrivals->order();
  order.restart(ledger.epochIteration, ledger.epoch);
  for (std::int64_t l = 0; l < ledger.landingsBefore; ++l) order.land();
  return afterDealing(ledger.begun, std::move(order), std::move(counts));
}

EpochPosition trainedInTurn(const Ledger& ledger) {
  std::vector<std::int64_t> counts;
  for (const Tally& worker : ledger.workers) counts.push_back(worker.batches);
  return ledger.begun.after(counts);
}

}  // namespace

std::vector<std::int64_t> examples(const Ledger& ledger) {
  std::vector<std::int64_t> all;
  for (const Tally& worker : ledger.workers) all.push_back(worker.examples + worker.unmerged.examples);
  return all;
}

EpochPosition position(const Ledger& ledger) {
  EpochPosition now = ledger.arrivals ? trainedWithArrivals(ledger) : trainedInTurn(ledger);
  now.examples = ledger.inEpoch.examples;
  for (const Tally& worker : ledger.workers) now.examples += worker.unmerged.examples;
  now.scoreSum = ledger.inEpoch.scoreSum;
  now.weight = ledger.inEpoch.weight;
  now.score = ledger.score;
  return now;
}

TrainingProgress progress(const Ledger& ledger, const Schedule& learningRate) {
  return {.workers = static_cast<int>(ledger.workers.size()),
          .epoch = ledger.epoch,
          .iteration = ledger.iteration,
          .rounds = ledger.roundsBefore + ledger.rounds,
          .score = ledger.score,
          .learningRate = learningRate.at(ledger.iteration, ledger.epoch),
          .inFlight = ledger.flights.inFlight()};
}

Round Decision::call() const {
  return {.weights = weights,
          .iteration = after.iteration,
          .planned = after.plan.iterations,
          .last = after.verdict != Verdict::Continue,
          .measured = measured,
          .arrivals = landingOf(after)};
}

void decide(const Ledger& now, std::span<const Contribution> contributions, const Votes& votes,
            const RoundFacts& facts, Decision& into) {
  into.after = now;
  Ledger& after = into.after;
  into.weights.resize(contributions.size());
  into.round = {.epoch = now.epoch, .inEpoch = now.inEpoch};
  after.verdict = verdictOf(contributions, votes, facts.met);
  const bool last = after.verdict != Verdict::Continue;
  if (after.arrivals) after.arrivals->chooseLanding(contributions, last, facts.met);
  addContributions(into, contributions, facts.met);
  into.round.merging = into.round.trained || (last && (facts.pending || now.flights.outstanding()));
  ++after.rounds;
  after.merges += into.round.merging ? 1 : 0;
  into.measured = votes.measures && into.round.merging && isMeasured(after.merges);
  into.scored = false;
  // An arrival without weight lands, too: its worker takes the global parameters.
  const bool lands = after.arrivals && into.round.merging;
  after.flights.endRound(now.plan, into.call(), lands || facts.pending);
  if (after.verdict == Verdict::EpochOver) beginEpoch(after);
  keepSums(into);
  if (std::ranges::none_of(contributions, &Contribution::late)) addScores(into, contributions);
}

void addScores(Decision& decision, std::span<const Contribution> contributions) {
  const auto landing = landingOf(decision.after);
  double scoreSum = 0, plainScoreSum = 0;
  std::int64_t batches = 0;
  for (std::size_t w = 0; w < contributions.size(); ++w) {
    if (!isMerged(landing, w)) continue;
    scoreSum += contributions[w].scoreSum;
    plainScoreSum += contributions[w].plainScoreSum;
    batches += contributions[w].batches;
  }
  RoundResult& round = decision.round;
  if (round.trained)
    decision.after.score =
        round.weight > 0 ? scoreSum / round.weight : plainScoreSum / static_cast<double>(batches);
  round.inEpoch.scoreSum += scoreSum;
  decision.scored = true;
  keepSums(decision);
}

void addPenalty(Decision& decision, double penalty) {
  if (penalty == 0) return;
  decision.after.score += penalty;
  decision.round.inEpoch.scoreSum += penalty * decision.round.weight;
  keepSums(decision);
}

bool isMeasured(std::int64_t merge) {
  const auto every = std::bit_floor(static_cast<std::uint64_t>(merge)) / 32;
  return every == 0 || static_cast<std::uint64_t>(merge) % every == 0;
}

}  // namespace muster
