// What is decided at the ends of rounds, without threads: the test brings what workers would have trained.
#include "muster/parallel/training/round_decisions.h"

#include "tests/parallel/no_exchange.h"
#include "tests/support/counting_rule.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Two workers of one node.
struct Rounds2 {
  explicit Rounds2(const StrategyTraits& of = {}, Ledger start = ledgerAt({}, 0, 0, 2), bool meet = true)
      : rule(of),
        traits(of),
        decisions({.local = 2},
                  {.strategy = rule,
                   .traits = traits,
                   .stop = stop,
                   .learningRate = StepSchedule{.initial = 0.4, .decay = 0.5, .every = 6},
                   .meetAtLandings = meet},
                  std::move(start), shares) {
    rule.grows = true;
  }
  void begin(std::int64_t epochs) {
    decisions.prepare();
    decisions.begin(epochs);
  }
  /// Each has trained as many batches of weight 2 and score 3.
  void bring(std::int64_t batches, bool ended = false, bool late = false) {
    iteration += batches;
    const auto n = static_cast<double>(batches);
    for (const int worker : {0, 1})
      decisions.of(worker) = {.scoreSum = late ? 0 : 6 * n,
                              .weight = 2 * n,
                              .batches = batches,
                              .iteration = iteration,
                              .ended = ended,
                              .late = late};
  }
  const Decision& decide(const Votes& votes = {}) {
    decisions.agree(exchange, votes);
    decisions.decide(/*met=*/true);
    return decisions.decision();
  }

  CountingRule rule;
  const StrategyTraits traits;
  std::atomic<bool> stop{false};
  NoExchange exchange{2};
  const std::unique_ptr<MergeUndo> undo = exchange.makeUndo({});
  MergeShares shares{rule, traits, 2, undo.get(), /*undoesMerges=*/true};
  RoundDecisions decisions;
  std::int64_t iteration = 0;
};

/// Worker 0 is twice as fast; both arrive every 2 iterations.
Ledger ledgerOfTwoSpeeds(bool wallClock = false) {
  Ledger ledger = ledgerAt({}, 0, 0, 2);
  setArrivals(ledger, {.iterations = {2, 2}, .speeds = {2, 1}, .wallClock = wallClock}, 0.1);
  return ledger;
}

}  // namespace

TEST_CASE("a plan follows from the ledger; the report is that before it") {
  Ledger start = ledgerAt({}, /*iteration=*/12, /*epoch=*/3, /*workers=*/2);
  start.rounds = 5;
  start.score = 4;
  Rounds2 rounds({}, start);
  rounds.rule.grows = false;
  rounds.begin(/*epochs=*/1);
  CHECK(rounds.decisions.ledger().plan.iterations == 2);
  const TrainingProgress& now = rounds.rule.last;
  CHECK(fmt::format("{} workers, iteration {} of epoch {}, {} rounds, rate {}, score {}", now.workers,
                    now.iteration, now.epoch, now.rounds, now.learningRate,
                    now.score) == "2 workers, iteration 12 of epoch 3, 5 rounds, rate 0.1, score 4");
  CHECK(rounds.decisions.report().divergence == 0.5);
  CHECK(rounds.decisions.report().values.front().value == 0);  // copied before the plan
  rounds.bring(1);
  rounds.decide();
  rounds.decisions.commit();
  CHECK(rounds.decisions.report().values.front().value == 1);
}

TEST_CASE("impossible plans are refused, of a checkpoint as a damaged file") {
  struct Case {
    std::int64_t iterations;
    LocalWork work;
    std::string problem;
  };
  for (const Case& c :
       {Case{0, LocalWork::Step, "the strategy's plan: a round must have at least 1 iteration, got 0"},
        Case{2, LocalWork::Gradient, "the strategy's plan: a round of gradients has 1 iteration, got 2"}}) {
    CAPTURE(c.problem);
    Rounds2 rounds({.localWork = c.work});
    rounds.rule.grows = false;
    rounds.rule.iterations = c.iterations;
    rounds.decisions.prepare();
    CHECK(thrown<InvalidArgument>([&] { rounds.decisions.begin(1); }) == c.problem);
    Ledger saved = ledgerAt({}, 0, 0, 2);
    saved.plan.iterations = c.iterations;
    saved.flights.resume({}, std::vector<double>(5));
    Rounds2 resumed({.localWork = c.work}, saved);
    CHECK(thrown<SavedStateError>([&] { resumed.decisions.prepare(); }) == "training state: " + c.problem);
  }
}

TEST_CASE("rounds are decided, committed and planned until the last epoch ends") {
  Rounds2 rounds;
  rounds.begin(/*epochs=*/2);
  CHECK(rounds.decisions.ledger().plan.iterations == 1);
  rounds.bring(1);
  CHECK(rounds.decide().after.verdict == Verdict::Continue);
  CHECK(rounds.decisions.result().merging);
  CHECK(rounds.rule.prepared == 1);
  CHECK(rounds.decisions.ledger().iteration == 0);  // until the commit
  rounds.decisions.commit();
  CHECK(rounds.decisions.ledger().iteration == 1);
  CHECK(rounds.decisions.ledger().plan.iterations == 2);
  for (const bool last : {false, true}) {
    rounds.bring(2, /*ended=*/true);
    CHECK(rounds.decide().after.verdict == Verdict::EpochOver);
    CHECK(rounds.decisions.isOver() == last);
    rounds.decisions.commit();
    CHECK(rounds.decisions.isOver() == last);
  }
  CHECK(rounds.decisions.ledger().epoch == 2);
  CHECK(rounds.decisions.start().epoch == 0);
}

TEST_CASE("a stop or a pause is the run's end; a node's listeners and any end are answered") {
  struct Row {
    Votes votes;
    bool ended, over, listen;
  };
  for (const Row& row : {Row{{}, false, false, false}, Row{{.listens = true}, false, false, true},
                         Row{{.stop = true}, false, true, true}, Row{{.pause = true}, false, true, true},
                         Row{{}, true, false, true}}) {
    Rounds2 rounds;
    rounds.begin(2);
    rounds.bring(1, row.ended);
    rounds.decide(row.votes);
    CHECK(rounds.decisions.isOver() == row.over);
    CHECK(rounds.decisions.nodesListen() == row.listen);
  }
}

TEST_CASE("a round without batches is merged only if the strategy has something left at the end") {
  for (const bool pending : {false, true}) {
    Rounds2 rounds;
    rounds.rule.isPending = pending;
    rounds.begin(1);
    rounds.bring(0, /*ended=*/true);
    CHECK(rounds.decide().round.merging == pending);
    CHECK(rounds.rule.prepared == (pending ? 0 : -1));
  }
}

TEST_CASE("a failure drops a round of gradients before the updates begin, and keeps it after") {
  for (const bool updating : {false, true}) {
    Rounds2 rounds({.localWork = LocalWork::Gradient});
    rounds.begin(1);
    rounds.bring(1);
    rounds.decide();
    if (updating) rounds.decisions.beginUpdates();
    rounds.shares.setUpdated(0, 0.5);
    rounds.decisions.close();
    CHECK(rounds.decisions.ledger().rounds == (updating ? 1 : 0));
    CHECK(rounds.decisions.ledger().score == (updating ? 3.5 : 0));  // with the penalty
  }
}

TEST_CASE("a round of gradients that merges nothing counts, without the penalty of the round before") {
  Rounds2 rounds({.localWork = LocalWork::Gradient});
  rounds.begin(1);
  rounds.bring(1);
  rounds.decide();
  rounds.shares.setUpdated(0, 0.5);
  rounds.decisions.commit();
  rounds.bring(0);
  CHECK_FALSE(rounds.decide().round.merging);
  CHECK(rounds.shares.penalty() == 0);
  rounds.decisions.close();
  CHECK(rounds.decisions.ledger().rounds == 2);
}

TEST_CASE("the last merge is kept before one that may overflow") {
  for (const double largest : {1e3, 1e13}) {
    Rounds2 rounds;
    rounds.begin(1);
    rounds.bring(1);
    rounds.decisions.of(1).largest = largest;
    rounds.decide();
    CHECK(rounds.shares.mergeKept() == (largest > 1e6));
  }
}

TEST_CASE("a merge that is found lost takes the ledger back to the round before; one that fails is dropped") {
  for (const bool committed : {true, false}) {
    Rounds2 rounds;
    rounds.begin(1);
    for (int round = 0; round < 2; ++round) {
      rounds.bring(1);
      rounds.decide();
      if (round == 0 || committed) rounds.decisions.commit();
    }
    if (committed)
      rounds.decisions.loseMerge();
    else
      rounds.shares.lose();
    rounds.decisions.close();
    CHECK(rounds.decisions.ledger().iteration == 1);
    CHECK(rounds.shares.mergeFailed());
  }
}

TEST_CASE("workers that land alone are merged when they arrive") {
  CHECK_FALSE(Rounds2().decisions.landsAlone());
  CHECK_FALSE(Rounds2({}, ledgerOfTwoSpeeds(), /*meet=*/true).decisions.landsAlone());
  Ledger resumed = ledgerOfTwoSpeeds();
  resumed.landingsBefore = 1;
  CHECK_FALSE(Rounds2({}, resumed, false).decisions.landsAlone());

  for (const bool wallClock : {false, true}) {
    Rounds2 rounds({}, ledgerOfTwoSpeeds(wallClock), false);
    CHECK(rounds.decisions.landsAlone());
    rounds.begin(1);
    const Contribution mine{.weight = 4, .batches = 2, .examples = 20, .iteration = 1};
    rounds.decisions.arrive(0, mine);
    CHECK(rounds.decisions.ledger().workers[0].unmerged.batches == 2);
    rounds.decisions.decide(/*met=*/false);
    CHECK(rounds.decisions.decision().weights == std::vector<double>{4, 0});
    rounds.decisions.commit();
    CHECK(rounds.decisions.ledger().workers[0].unmerged.batches == 0);
    CHECK(landings(rounds.decisions.ledger()) == 1);
  }
}

TEST_CASE("a resumed run keeps its checkpoint's plan, and refuses an impossible one") {
  for (const std::int64_t iterations : {7, 0}) {
    Ledger start = ledgerAt({}, 4, 1, 2);
    Ledger saved{.workers = std::vector<Tally>(2), .plan = {.iterations = iterations}};
    saved.flights = FragmentFlights(2);
    saved.flights.resume({}, std::vector<double>{0, 0, 0, 0, 0});
    resume(start, saved);
    start.workers[1].unmerged.batches = 3;
    Rounds2 rounds({}, start);
    CHECK(rounds.decisions.of(1).batches == 3);  // if it lands later
    if (iterations == 0) {
      CHECK(thrown<SavedStateError>([&] { rounds.decisions.prepare(); }) ==
            "training state: the strategy's plan: a round must have at least 1 iteration, got 0");
      continue;
    }
    rounds.begin(1);
    CHECK(rounds.decisions.ledger().plan.iterations == 7);
  }
}
