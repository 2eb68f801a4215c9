// What happens at the end of a round, on values: no thread, no model, no strategy.
#include "muster/parallel/training/ledger.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <limits>

#include "muster/core/base/error.h"
#include "muster/parallel/training/resumption.h"
#include "muster/parallel/training/round_decisions.h"

using namespace muster;

namespace {

using Contributions = std::vector<Contribution>;
using Counts = std::vector<std::int64_t>;
using Weights = std::vector<double>;

/// Batches of weight 2, score 3 and 10 examples each.
Contribution trained(std::int64_t batches, std::int64_t iteration) {
  const auto n = static_cast<double>(batches);
  return {.scoreSum = 6 * n,
          .weight = 2 * n,
          .plainScoreSum = 3 * n,
          .batches = batches,
          .examples = 10 * batches,
          .iteration = iteration};
}

Contribution ended(Contribution contribution = {}) {
  contribution.ended = true;
  return contribution;
}

Contribution late(Contribution contribution) {
  contribution.scoreSum = contribution.plainScoreSum = 0;
  contribution.late = true;
  return contribution;
}

/// Batches, examples, sum of scores and weight of a part of an epoch, or of what a worker has not merged.
template <typename Sums>
std::string sums(const Sums& of) {
  return fmt::format("{} batches, {} examples, scores {} of {}", of.batches, of.examples, of.scoreSum,
                     of.weight);
}

std::string inWords(const Decision& of) {
  return fmt::format("{}, weight {}, score {}, {} examples to iteration {}",
                     of.round.merging ? "merges" : "merges nothing", of.round.weight, of.after.score,
                     of.round.examples, of.after.iteration);
}

/// What is counted between two rounds.
std::string counts(const Ledger& ledger) {
  return fmt::format("{} rounds, {} merges, iteration {} of epoch {}", ledger.rounds, ledger.merges,
                     ledger.iteration, ledger.epoch);
}

/// The next batch of a training that is resumed, and the later ones that are trained.
std::string place(const RoundTransaction& transaction) {
  const EpochPosition at = position(transaction.ledger());
  std::string text = fmt::format("{}", at.nextBatch);
  for (const auto later : at.trainedLater) text += fmt::format(" {}", later);
  return text;
}

/// Where workers that arrive one at a time are: landings, iterations until each worker's next one, batches
/// that are trained and not merged.
std::string arriving(const RoundTransaction& transaction) {
  const Ledger& now = transaction.ledger();
  return fmt::format("{} landings, iterations {} and {}, unmerged {} and {}", landings(now),
                     iterations(now, 0, false), iterations(now, 1, false), now.workers[0].unmerged.batches,
                     now.workers[1].unmerged.batches);
}

Ledger newLedger(int workers, const EpochPosition& begun = {}) {
  Ledger ledger = ledgerAt(begun, /*iteration=*/0, /*epoch=*/0, workers);
  ledger.plan = {.iterations = 3};
  return ledger;
}

RoundTransaction begun(const Ledger& start, int fragments = 1) {
  RoundTransaction transaction(start);
  transaction.begin(fragments);
  return transaction;
}

/// A round of these contributions that is carried out.
const Decision& round(RoundTransaction& transaction, const Contributions& contributions,
                      const Votes& votes = {}, const RoundFacts& facts = {}) {
  transaction.decide(contributions, votes, facts);
  transaction.commit(contributions, 0);
  return transaction.decision();
}

/// Worker 0 is twice as fast; both arrive every 2 iterations. Batches go to workers 0 1 0 0 1 0 0 1 0;
/// workers 0, 0 and 1 land after 3, 6 and 6 batches.
ArrivalPlan twoSpeeds() {
  return {.iterations = {2, 2}, .speeds = {2, 1}};
}

Ledger withArrivals(const ArrivalPlan& plan, Ledger ledger = newLedger(2)) {
  setArrivals(ledger, plan, 0.1);
  return ledger;
}

}  // namespace

TEST_CASE("the verdict follows from stop, end of the epoch and pause, in this order") {
  struct Row {
    const char* given;
    Verdict verdict;
  };
  for (const auto& [given, verdict] :
       {Row{"", Verdict::Continue}, Row{"first", Verdict::Continue}, Row{"first second", Verdict::EpochOver},
        Row{"stop", Verdict::Stop}, Row{"stop first second", Verdict::Stop}, Row{"stop pause", Verdict::Stop},
        Row{"pause", Verdict::Pause}, Row{"pause first", Verdict::Pause},
        Row{"pause first second", Verdict::EpochOver}, Row{"apart stop", Verdict::Continue},
        Row{"apart pause first second", Verdict::Continue}}) {
    CAPTURE(given);
    const auto has = [text = std::string_view(given)](const char* word) {
      return text.find(word) != text.npos;
    };
    Decision decision;
    const Contributions both{{.ended = has("first")}, {.ended = has("second")}};
    decide(newLedger(2), both, {.stop = has("stop"), .pause = has("pause")}, {.met = !has("apart")},
           decision);
    CHECK(decision.after.verdict == verdict);
    CHECK(decision.call().last == (verdict != Verdict::Continue));
  }
}

TEST_CASE("a round adds contributions, weighted by their loss normalisers") {
  auto transaction = begun(newLedger(3));
  const Contributions all{
      {.scoreSum = 2, .weight = 2, .plainScoreSum = 1, .batches = 1, .examples = 8, .iteration = 2},
      {},  // had no batch
      {.scoreSum = 18, .weight = 6, .plainScoreSum = 6, .batches = 2, .examples = 24, .iteration = 3}};
  const Decision& decision = round(transaction, all);
  CHECK(decision.weights == Weights{2, 0, 6});
  // (2 + 18) / 8
  CHECK(inWords(decision) == "merges, weight 8, score 2.5, 32 examples to iteration 3");
  CHECK(decision.call().planned == 3);
  const Ledger& now = transaction.ledger();
  CHECK(counts(now) == "1 rounds, 1 merges, iteration 3 of epoch 0");
  CHECK(now.score == 2.5);
  CHECK(sums(now.inEpoch) == "3 batches, 32 examples, scores 20 of 8");
  CHECK(now.workers[2].batches == 2);
  CHECK(now.workers[2].examples == 24);

  const Decision& next = round(transaction, {trained(1, 4), {}, {}});
  CHECK(next.weights == Weights{2, 0, 0});
  CHECK(next.after.score == 3);
  CHECK(sums(next.round.inEpoch) == "4 batches, 42 examples, scores 26 of 10");
  CHECK(transaction.ledger().workers[0].batches == 2);
}

TEST_CASE("if every example was masked, the numbers of batches are the weights") {
  auto transaction = begun(newLedger(2));
  const Decision& decision =
      round(transaction, {{.plainScoreSum = 3, .batches = 2, .examples = 20, .iteration = 2},
                          {.plainScoreSum = 6, .batches = 1, .examples = 10, .iteration = 1}});
  CHECK(decision.weights == Weights{2, 1});
  // (3 + 6) / 3
  CHECK(inWords(decision) == "merges, weight 0, score 3, 30 examples to iteration 2");
  CHECK(sums(transaction.ledger().inEpoch) == "3 batches, 30 examples, scores 0 of 0");
  // Beside a worker with unmasked examples, one without them does not count.
  const Decision& mixed =
      round(transaction, {{.plainScoreSum = 3, .batches = 2, .iteration = 4}, trained(1, 3)});
  CHECK(mixed.weights == Weights{0, 2});
  CHECK(mixed.after.score == 3);
}

TEST_CASE("a round without batches merges nothing, and keeps score and counters") {
  auto transaction = begun(newLedger(2));
  round(transaction, {trained(1, 1), trained(1, 1)});
  const Decision& empty = round(transaction, {{}, {}});
  CHECK_FALSE(empty.round.trained);
  CHECK_FALSE(empty.round.merging);
  CHECK(empty.after.score == 3);
  CHECK(empty.after.iteration == 1);
  CHECK(transaction.ledger().rounds == 2);
  CHECK(transaction.ledger().merges == 1);
}

TEST_CASE("weights that add up to infinity open no decision") {
  auto transaction = begun(newLedger(2));
  round(transaction, {trained(1, 1), {}});
  const double most = std::numeric_limits<double>::max();
  const Contributions both{{.weight = most, .batches = 1}, {.weight = most, .batches = 1}};
  CHECK_THROWS_WITH_AS(transaction.decide(both, {}, {}), "the weights of the workers' batches add up to inf",
                       InvalidArgument);
  transaction.close(both, 0, /*failed=*/false);
  CHECK(transaction.ledger().rounds == 1);
  CHECK(transaction.decision().after.score == 3);  // of the round before
}

TEST_CASE("the end of an epoch begins the next one, and the round keeps the epoch's sums") {
  auto transaction = begun(newLedger(2, {.nextBatch = 2, .examples = 20, .scoreSum = 1, .weight = 4}));
  const Decision& decision = round(transaction, {ended(trained(2, 2)), ended(trained(1, 1))});
  CHECK(decision.after.verdict == Verdict::EpochOver);
  CHECK(decision.round.epoch == 0);
  CHECK(sums(decision.round.inEpoch) == "5 batches, 50 examples, scores 19 of 10");
  const Ledger& now = transaction.ledger();
  CHECK(counts(now) == "1 rounds, 1 merges, iteration 2 of epoch 1");
  CHECK(now.epochIteration == 2);
  CHECK(sums(now.inEpoch) == "0 batches, 0 examples, scores 0 of 0");
  CHECK(now.workers[0].batches == 0);
  CHECK(now.workers[0].examples == 20);  // counts for the whole run
  CHECK(examples(now) == Counts{20, 10});
  const EpochPosition start = position(now);
  CHECK(place(transaction) == "0");
  CHECK(fmt::format("{} {} {}", start.examples, start.weight, start.score) == "0 0 3");
}

TEST_CASE("the position follows from the batches that each worker has merged") {
  struct Row {
    std::int64_t next;
    Counts later;
    std::array<std::int64_t, 2> batches;  // of the two workers, in one round
    const char* after;
  };
  // Untrained batches are dealt in turn.
  const Row rows[] = {{0, {}, {0, 0}, "0"},      {0, {}, {1, 1}, "2"},      {0, {}, {3, 3}, "6"},
                      {0, {}, {2, 1}, "3"},      {0, {}, {1, 0}, "1"},      {0, {}, {0, 1}, "0 1"},
                      {0, {}, {3, 1}, "3 4"},    {0, {}, {1, 3}, "2 3 5"},  {3, {5}, {2, 1}, "7"},
                      {3, {5}, {2, 0}, "4 5 6"}, {3, {5}, {0, 1}, "3 4 5"}, {2, {3, 4}, {1, 0}, "5"}};
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    auto transaction = begun(newLedger(2, {.nextBatch = row.next, .trainedLater = row.later}));
    round(transaction, {trained(row.batches[0], 1), trained(row.batches[1], 1)});
    CHECK(place(transaction) == row.after);
    CHECK(position(transaction.ledger()).examples == 10 * (row.batches[0] + row.batches[1]));
  }
}

TEST_CASE("late scores are added before the commit, and give what they give in time") {
  for (const bool atEpochEnd : {false, true}) {
    CAPTURE(atEpochEnd);
    auto inTime = begun(newLedger(2)), late = begun(newLedger(2));
    Contributions complete{trained(2, 2), trained(1, 1)};
    if (atEpochEnd) complete = {ended(complete[0]), ended(complete[1])};
    round(inTime, complete);
    late.decide(Contributions{complete[0], ::late(complete[1])}, {}, {});
    CHECK_FALSE(late.decision().scored);
    CHECK(late.decision().weights == Weights{4, 2});  // known at once
    CHECK(late.decision().after.score == 0);
    CHECK(late.decision().after.inEpoch.scoreSum == 0);
    late.commit(complete, 0);
    CHECK(late.decision().after.score == 3);
    CHECK(late.ledger().score == inTime.ledger().score);
    CHECK(late.decision().round.inEpoch.scoreSum == 18);
    CHECK(sums(late.ledger().inEpoch) == sums(inTime.ledger().inEpoch));
  }
}

TEST_CASE("the penalty of the updates is added to the score, and to the sum with the round's weight") {
  auto transaction = begun(newLedger(2));
  transaction.decide(Contributions{trained(1, 1), trained(1, 1)}, {}, {});
  transaction.allCarryOut();
  transaction.commit({}, 0.5);
  CHECK(transaction.decision().after.score == 3.5);
  CHECK(transaction.ledger().score == 3.5);
  CHECK(transaction.ledger().inEpoch.scoreSum == 14);  // 6 + 6 + 0.5 * 4
}

TEST_CASE("a round counts if it was carried out, and leaves no trace otherwise") {
  const Contributions complete{trained(2, 3), trained(1, 2)}, lacking{trained(2, 3), late(trained(1, 2))};
  struct Row {
    const char *what, *acts;  // "decide late": without the last score; "close failed": after a failed merge
    bool counted;
  };
  for (const auto& [what, acts, counted] :
       {Row{"no decision", "close", false}, Row{"failed while the workers train", "close failed", false},
        Row{"aborted before anyone merges", "decide, close failed", false},
        Row{"the strategy's preparation has failed: not carried out", "decide, close", false},
        Row{"aborted while all merge: they finish", "decide, carry out, close", true},
        Row{"a merge has failed", "decide, carry out, close failed", false},
        Row{"a late score is missing: the merge wrote nothing", "decide late, close late", false},
        Row{"aborted after all late scores came", "decide late, close", true},
        Row{"all late scores came, but the merge has failed", "decide late, close failed", false},
        Row{"committed, then another failure", "decide, commit, close failed", true},
        Row{"committed, and lost", "decide, commit, revoke", false},
        Row{"lost only once", "decide, commit, revoke, revoke", false},
        Row{"carried out at the close, and lost", "decide, carry out, close, revoke", false},
        Row{"dropped: the round before is not lost with it", "decide, close failed, revoke", false}}) {
    CAPTURE(what);
    auto transaction = begun(newLedger(2));
    round(transaction, {trained(1, 1), trained(1, 1)});
    std::string_view left = acts;
    for (std::string_view act; !left.empty(); left.remove_prefix(std::min(left.size(), act.size() + 2))) {
      act = left.substr(0, left.find(", "));
      const auto& scores = act.ends_with(" late") ? lacking : complete;
      if (act.starts_with("decide")) transaction.decide(scores, {}, {});
      if (act == "carry out") transaction.allCarryOut();
      if (act == "commit") transaction.commit(scores, 0);
      if (act.starts_with("close")) transaction.close(scores, 0, act == "close failed");
      if (act == "revoke") transaction.revoke();
    }
    const Ledger& now = transaction.ledger();
    CHECK(counts(now) == (counted ? "2 rounds, 2 merges, iteration 3 of epoch 0"
                                  : "1 rounds, 1 merges, iteration 1 of epoch 0"));
    CHECK(sums(now.inEpoch) ==
          (counted ? "5 batches, 50 examples, scores 30 of 10" : "2 batches, 20 examples, scores 12 of 4"));
    CHECK(place(transaction) == (counted ? "5" : "2"));
    CHECK(now.workers[0].examples == (counted ? 30 : 10));
    CHECK(transaction.decision().after.iteration == now.iteration);
  }
}

TEST_CASE("a round that is dropped ends no epoch, and moves no arrival") {
  for (const bool arrive : {false, true}) {
    auto transaction = begun(arrive ? withArrivals(twoSpeeds()) : newLedger(2));
    Contributions all{trained(2, 1), trained(1, 1)};
    if (!arrive) all = {ended(all[0]), ended(all[1])};
    transaction.decide(all, {}, {});
    transaction.allCarryOut();
    transaction.close(all, 0, /*failed=*/true);
    CHECK(transaction.ledger().epoch == 0);
    CHECK(transaction.ledger().verdict == Verdict::Continue);
    CHECK(transaction.decision().after.verdict == Verdict::Continue);
    if (!arrive) continue;
    CHECK(arriving(transaction) == "0 landings, iterations 2 and 1, unmerged 0 and 0");
    round(transaction, all);
    CHECK(landings(transaction.ledger()) == 1);
  }
}

TEST_CASE("what is launched is in flight if its round is carried out, and lands at the latest in the last") {
  Ledger start = newLedger(2);
  start.plan = {.iterations = 1, .launch = FragmentSet::of(0), .land = FragmentSet::none()};
  auto transaction = begun(start);
  const Contributions all{trained(1, 1), trained(2, 1)};
  transaction.decide(all, {}, {});
  transaction.close(all, 0, /*failed=*/true);
  CHECK(transaction.ledger().flights.weights() == Weights{0, 0, 0, 0, 0});
  CHECK_FALSE(anyInFlight(transaction.ledger()));

  round(transaction, all);
  CHECK(transaction.ledger().flights.weights() == Weights{0, 0, 2, 4, 1});  // since then; then; iteration
  CHECK(anyInFlight(transaction.ledger()));
  CHECK(progress(transaction.ledger(), 0.1).inFlight.contains(0));
  // The same plan again would launch it twice.
  CHECK_THROWS_AS(transaction.decide(all, {}, {}), InvalidArgument);
  CHECK(transaction.ledger().flights.weights() == Weights{0, 0, 2, 4, 1});

  transaction.ledger().plan = {.iterations = 1, .launch = FragmentSet::none(), .land = FragmentSet::of(0)};
  round(transaction, {trained(1, 2), {}});
  CHECK(transaction.ledger().flights.inFlight().empty());
  // The last round merges what was trained since, though it trains nothing itself.
  CHECK(round(transaction, {ended(), ended()}).round.merging);
  CHECK_FALSE(round(transaction, {ended(), ended()}).round.merging);
}

TEST_CASE("in a last round without batches only what is pending or in flight is merged") {
  struct Row {
    bool last, pending, inFlight, merging;
  };
  const Row rows[] = {{true, false, false, false}, {true, true, false, true},   {true, false, true, true},
                      {true, true, true, true},    {false, true, false, false}, {false, false, true, false}};
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    Ledger start = newLedger(1);
    if (row.inFlight) start.plan.land = FragmentSet::none();
    auto transaction = begun(start);
    round(transaction, {trained(1, 1)});
    CHECK(transaction.ledger().flights.inFlight().empty() == !row.inFlight);
    transaction.decide(Contributions{{}}, {.stop = row.last}, {.pending = row.pending});
    CHECK(transaction.decision().round.merging == row.merging);
    if (row.merging) CHECK(transaction.decision().after.flights.landed());
    CHECK_FALSE(transaction.decision().round.trained);
  }
}

TEST_CASE("workers that arrive one at a time are merged when they land") {
  auto transaction = begun(withArrivals(twoSpeeds()));
  // Worker 1 until worker 0 lands.
  CHECK(arriving(transaction) == "0 landings, iterations 2 and 1, unmerged 0 and 0");
  CHECK(iterations(transaction.ledger(), 1, /*alone=*/true) == 2);

  const Decision* decision = &round(transaction, {trained(2, 1), trained(1, 1)});
  CHECK(decision->weights == Weights{4, 0});
  CHECK(decision->round.examples == 20);
  CHECK(arriving(transaction) == "1 landings, iterations 2 and 1, unmerged 0 and 1");
  // Not yet what worker 1 has trained; but the position is that of all that is trained.
  CHECK(sums(transaction.ledger().inEpoch) == "2 batches, 20 examples, scores 12 of 4");
  CHECK(place(transaction) == "3");
  CHECK(position(transaction.ledger()).examples == 30);
  CHECK(anyInFlight(transaction.ledger()));

  // Worker 1 contributes what it has trained since it began.
  round(transaction, {trained(2, 3), trained(2, 2)});
  CHECK(place(transaction) == "6");
  CHECK(arriving(transaction) == "2 landings, iterations 0 and 0, unmerged 0 and 2");
  transaction.decide(Contributions{{}, trained(2, 2)}, {}, {});
  CHECK(transaction.decision().weights == Weights{0, 4});
  CHECK(transaction.decision().call().arrivals[1].staleness == 2);
  CHECK_FALSE(transaction.decision().call().arrivals[0].arrives);
  transaction.commit(Contributions{{}, trained(2, 2)}, 0);
  CHECK(place(transaction) == "6");
  CHECK(counts(transaction.ledger()) == "3 rounds, 3 merges, iteration 3 of epoch 0");
  CHECK(landings(transaction.ledger()) == 3);
  CHECK(transaction.ledger().inEpoch.batches == 6);

  // At the end of the epoch all begin again.
  round(transaction, {ended(trained(1, 4)), ended()});
  CHECK(counts(transaction.ledger()) == "4 rounds, 4 merges, iteration 4 of epoch 1");
  CHECK(transaction.ledger().epochIteration == 4);
  CHECK(arriving(transaction) == "0 landings, iterations 2 and 1, unmerged 0 and 0");
  CHECK(place(transaction) == "0");
}

TEST_CASE("an arrival of masked examples lands, without weight") {
  auto transaction = begun(withArrivals(twoSpeeds()));
  const Decision& decision =
      round(transaction, {{.plainScoreSum = 3, .batches = 2, .iteration = 1}, trained(1, 1)});
  CHECK(decision.round.merging);
  CHECK(decision.weights == Weights{0, 0});
  CHECK(transaction.ledger().flights.landed());
  CHECK(landings(transaction.ledger()) == 1);
}

TEST_CASE("if a worker that should land has no batches, the others train the rest of the epoch") {
  auto transaction = begun(withArrivals(twoSpeeds()));
  const Decision* decision = &round(transaction, {ended(), trained(1, 1)});
  CHECK(decision->after.verdict == Verdict::Continue);
  CHECK_FALSE(decision->round.merging);
  CHECK(transaction.ledger().workers[1].unmerged.batches == 1);
  CHECK(iterations(transaction.ledger(), 1, false) == std::numeric_limits<std::int64_t>::max());
  decision = &round(transaction, {ended(), ended(trained(4, 4))});
  CHECK(decision->after.verdict == Verdict::EpochOver);
  CHECK(decision->weights == Weights{0, 8});
}

TEST_CASE("after a stop the order of batches is that of the epoch, if iterations depend on it") {
  // In epoch 1 worker 0 trains three batches and waits: 0 1 0 0 1 1.
  const ArrivalPlan plan{.iterations = {1, 1},
                         .iterationsFrom = [](const Departure& from) { return from.epoch == 0 ? 1 : 3; },
                         .speeds = {3, 1},
                         .staleness = 0};
  auto transaction = begun(withArrivals(plan, ledgerAt({}, /*iteration=*/5, /*epoch=*/1, 2)));
  round(transaction, {trained(3, 8), {}}, {.stop = true});
  CHECK(place(transaction) == "1 2 3");
  CHECK(landings(transaction.ledger()) == 0);  // all continue from the same state
  CHECK_FALSE(anyInFlight(transaction.ledger()));
}

TEST_CASE("a landing while others train takes only those that have arrived") {
  auto transaction = begun(withArrivals(twoSpeeds()));
  transaction.ledger().workers[0].unmerged = trained(2, 1);
  // What worker 1 brought last was merged long ago.
  CHECK(round(transaction, {trained(2, 1), trained(5, 5)}, {}, {.met = false}).weights == Weights{4, 0});
  CHECK(arriving(transaction).ends_with("unmerged 0 and 0"));
  CHECK(transaction.ledger().inEpoch.batches == 2);
}

TEST_CASE("on the wall clock workers land when they arrive; a stop lists what was taken, not trained") {
  ArrivalPlan wall{.iterations = {2, 2}, .speeds = {1, 1}, .wallClock = true};
  auto transaction = begun(withArrivals(wall));
  CHECK(iterations(transaction.ledger(), 0, false) == 2);
  transaction.ledger().arrivals->arrive(1);
  CHECK(round(transaction, {{}, trained(2, 2)}, {}, {.met = false}).weights == Weights{0, 4});
  // Batches 0 and 1 are trained; now 2, 3 and 5 are, and 4 was taken when the training stopped.
  Contribution interrupted = trained(1, 3);
  interrupted.untrained = 4;
  round(transaction, {trained(2, 3), interrupted}, {.stop = true});
  CHECK(place(transaction) == "4 5");
  CHECK(position(transaction.ledger()).examples == 50);
}

TEST_CASE("an impossible plan of arrivals is refused") {
  const std::pair<ArrivalPlan, const char*> rows[] = {
      {{.iterations = {0, 5}, .speeds = {1, 1}}, "a worker has at least 1 iteration, got 0"},
      {{.iterations = {1}, .speeds = {1, 1}}, "2 workers need as many speeds and iterations, got 2 and 1"},
      {{.iterations = {1, 1}, .speeds = {1, 0}}, "a speed must be above 0, got 0"},
      {{.iterations = {1, 1}, .speeds = {1, 1}, .grace = -1}, "grace must not be negative, got -1"},
      {{.iterations = {1, 1}, .speeds = {1, 1}, .staleness = -1}, "staleness must not be negative, got -1"}};
  for (const auto& [plan, problem] : rows)
    CHECK_THROWS_WITH_AS(withArrivals(plan), doctest::Contains(problem), InvalidArgument);
}

TEST_CASE("a resumed run counts on from its checkpoint") {
  CHECK(ledgerAt({.nextBatch = 2, .trainedLater = {4, 6}}, 0, 0, 1).inEpoch.batches == 4);
  Ledger saved{.roundsBefore = 7, .workers = std::vector<Tally>(2), .plan = {.iterations = 4}};
  saved.flights = FragmentFlights(2);
  saved.flights.resume(FragmentSet::of(0), Weights{1, 2, 3, 4, 5});
  Ledger start = ledgerAt({.nextBatch = 6, .examples = 60, .scoreSum = 9, .weight = 12, .score = 2}, 3, 1, 2);
  resume(start, saved);
  auto transaction = begun(start);
  CHECK(transaction.ledger().plan.iterations == 4);
  CHECK(transaction.ledger().epochIteration == 3);
  const TrainingProgress now = progress(transaction.ledger(), 0.1);
  CHECK(fmt::format("{} {}", now.rounds, now.score) == "7 2");
  round(transaction, {trained(1, 4), trained(1, 4)}, {}, {});
  CHECK(counts(transaction.ledger()) == "1 rounds, 1 merges, iteration 4 of epoch 1");
  CHECK(progress(transaction.ledger(), 0.1).rounds == 8);
  CHECK(transaction.ledger().flights.weights() == Weights{0, 0, 3, 4, 4});  // 1 + 2 and 2 + 2; landed first
  CHECK(sums(transaction.ledger().inEpoch) == "8 batches, 80 examples, scores 21 of 16");
  CHECK(place(transaction) == "8");
}

TEST_CASE("a resumed run repeats landings and what was trained and not merged") {
  Ledger saved{.epochIteration = 10, .workers = std::vector<Tally>(2), .landingsBefore = 1};
  saved.flights = FragmentFlights(2);
  saved.flights.resume({}, Weights{0, 0, 4, 0, 11});
  saved.workers[1].unmerged = trained(1, 11);
  Ledger start = ledgerAt({.nextBatch = 3, .examples = 30, .scoreSum = 12, .weight = 4}, 11, 0, 2);
  resume(start, saved);
  CHECK(anyInFlight(saved));
  auto transaction = begun(withArrivals(twoSpeeds(), start));
  CHECK(transaction.ledger().epochIteration == 10);
  CHECK(arriving(transaction) == "1 landings, iterations 2 and 1, unmerged 0 and 1");
  CHECK(place(transaction) == "3");
  CHECK(position(transaction.ledger()).examples == 30);
  CHECK(transaction.ledger().inEpoch.batches == 2);
  // A stop after worker 0 has trained batch 3: batch 4 goes to worker 1.
  auto stopped = transaction;
  round(stopped, {trained(1, 12), trained(1, 11)}, {.stop = true});
  CHECK(place(stopped) == "4");
  CHECK(stopped.ledger().inEpoch.batches == 4);
  CHECK(position(stopped.ledger()).examples == 40);
  stopped = transaction;
  round(stopped, {{}, trained(2, 12)}, {.stop = true});
  CHECK(place(stopped) == "3 4");
}

TEST_CASE("the epoch after a resumed one repeats no landing") {
  Ledger saved{.workers = std::vector<Tally>(2), .landingsBefore = 1};
  saved.flights = FragmentFlights(2);
  saved.flights.resume({}, Weights{0, 0, 0, 0, 0});
  Ledger start = newLedger(2, {.nextBatch = 2});
  resume(start, saved);
  // Batches go to workers 0 1 0 0 0 1, and from the first landing on to 0 0 0 1.
  auto transaction = begun(withArrivals({.iterations = {1, 1}, .speeds = {3, 1}}, start));
  auto stopped = transaction;
  round(stopped, {trained(1, 2), trained(1, 2)}, {.stop = true});
  CHECK(place(stopped) == "3 5");
  round(transaction, {ended(trained(1, 2)), ended(trained(1, 2))});
  CHECK(transaction.ledger().epoch == 1);
  round(transaction, {trained(1, 3), trained(1, 3)}, {.stop = true});
  CHECK(place(transaction) == "2");
}

TEST_CASE("a ledger that is saved and read is the same") {
  const auto saved = [](const Ledger& ledger) {
    TrainingState state;
    addLedger(state, ledger, {.description = "a rule", .options = ""});
    return state;
  };
  const auto numbers = [](const TrainingState& state) {
    const auto all = numbersIn<std::int64_t>(state, "rounds", 0);
    return Counts(all.begin(), all.end());
  };
  Ledger start = newLedger(2);
  start.roundsBefore = 5;
  start.plan = {.iterations = 2, .launch = FragmentSet::of(0), .land = FragmentSet::none()};
  auto inTurn = begun(start);
  round(inTurn, {trained(1, 1), trained(2, 2)});
  TrainingState state = saved(inTurn.ledger());
  CHECK(numbers(state) == Counts{6, 2, 1, 0, 1, 0, 0});
  Ledger read = savedLedger(state);
  CHECK(isPlanned(read));
  CHECK(examples(read) == Counts{10, 20});
  CHECK(read.roundsBefore == 6);
  CHECK(read.plan.iterations == 2);
  CHECK(read.plan.launch.bits == 1);
  CHECK(read.plan.land.bits == 0);
  CHECK(read.flights.inFlight().bits == 1);
  CHECK(read.flights.weights() == Weights{0, 0, 2, 4, 2});
  CHECK_FALSE(read.arrivals.has_value());
  putValues(state, "examples", numbersAs<std::int64_t>(Counts{1, 2, 3}));
  CHECK_THROWS_AS(savedLedger(state), SavedStateError);

  auto arrived = begun(withArrivals(twoSpeeds()));
  round(arrived, {trained(2, 1), trained(1, 1)});
  state = saved(arrived.ledger());
  CHECK(numbers(state)[5] == 1);
  read = savedLedger(state);
  CHECK(examples(read) == Counts{20, 10});
  CHECK(read.workers[1].examples == 0);
  CHECK(read.landingsBefore == 1);
  CHECK(read.workers[0].unmerged.batches == 0);
  CHECK(sums(read.workers[1].unmerged) == "1 batches, 10 examples, scores 6 of 2");
  CHECK(read.workers[1].unmerged.plainScoreSum == 3);
  CHECK(read.workers[1].unmerged.iteration == 1);
  // At a stop all land.
  round(arrived, {trained(1, 2), trained(1, 1)}, {.stop = true});
  CHECK(numbers(saved(arrived.ledger())) == Counts{0, 3, -1, -1, 0, 0, 0});
  CHECK(findValues(saved(arrived.ledger()), "unmerged") == nullptr);
}

TEST_CASE("nodes vote: what one node wants is decided on all, from the same contributions") {
  struct Row {
    Votes first, second, together;
  };
  const auto text = [](const Votes& votes) {
    return fmt::format("{} {} {} {}", votes.stop, votes.pause, votes.listens, votes.measures);
  };
  const Row rows[] = {
      {{}, {}, {}},
      {{.stop = true}, {}, {.stop = true}},
      {{}, {.stop = true}, {.stop = true}},
      {{}, {.pause = true}, {.pause = true}},
      {{.listens = true}, {}, {.listens = true}},
      {{}, {.measures = true}, {.measures = true}},
      {{.stop = true, .listens = true}, {.pause = true}, {.stop = true, .pause = true, .listens = true}}};
  // Node n has the workers n and 2 + n.
  const NodePlace places[] = {{.node = 0, .nodes = 2, .local = 2}, {.node = 1, .nodes = 2, .local = 2}};
  for (const Row& row : rows) {
    CAPTURE(text(row.together));
    std::array<RoundMessages, 2> messages{RoundMessages(places[0]), RoundMessages(places[1])};
    const Contributions of0{trained(1, 1), {}, trained(3, 3), {}},
        of1{{}, trained(2, 2), {}, ended(trained(4, 4))};
    const auto first = messages[0].write(of0, row.first), second = messages[1].write(of1, row.second);
    for (RoundMessages& here : messages) {
      const auto room = here.room();
      REQUIRE(room.size() == first.size() + second.size());
      std::memcpy(room.data(), first.data(), first.size());
      std::memcpy(room.data() + first.size(), second.data(), second.size());
      Contributions all(4);
      const Votes votes = here.read(all);
      CHECK(text(votes) == text(row.together));
      CHECK(all[3].ended);
      CHECK_FALSE(all[0].ended);
      Decision decision;
      decide(newLedger(4), all, votes, {}, decision);
      CHECK(decision.weights == Weights{2, 4, 6, 8});  // of 1, 2, 3 and 4 batches
      CHECK(decision.after.verdict == (row.together.stop    ? Verdict::Stop
                                       : row.together.pause ? Verdict::Pause
                                                            : Verdict::Continue));
    }
  }
}

TEST_CASE("the divergence is measured at fewer and fewer merges, if a listener reads it") {
  for (const std::int64_t merge : {1, 2, 63, 64, 66, 128, 132, 256, 264})
    CHECK_MESSAGE(isMeasured(merge), merge);
  CHECK(isMeasured(std::int64_t{1} << 40));
  for (const std::int64_t merge : {65, 127, 130, 260}) CHECK_FALSE_MESSAGE(isMeasured(merge), merge);
  auto transaction = begun(newLedger(1));
  CHECK_FALSE(round(transaction, {trained(1, 1)}).call().measured);
  CHECK(round(transaction, {trained(1, 2)}, {.measures = true}).call().measured);
  CHECK_FALSE(round(transaction, {{}}, {.measures = true}).call().measured);  // merges nothing
}
