#include "muster/parallel/training/round_plans.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/counting_rule.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("a plan follows from the ledger; the report is that before it") {
  CountingRule rule;
  RoundPlans plans(rule, LocalWork::Step, 0.1);
  Ledger ledger = ledgerAt({}, /*iteration=*/12, /*epoch=*/3, /*workers=*/2);
  ledger.rounds = 5;
  CHECK(plans.next(ledger).iterations == 2);
  CHECK(rule.last.workers == 2);
  CHECK(rule.last.iteration == 12);
  CHECK(rule.last.epoch == 3);
  CHECK(rule.last.rounds == 5);
  CHECK(rule.last.learningRate == 0.1);
  CHECK(plans.report().divergence == 0.5);
  CHECK(plans.report().values.front().value == 0);  // copied before the plan
  plans.next(ledger);
  CHECK(plans.report().values.front().value == 1);
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
    CountingRule rule;
    rule.iterations = c.iterations;
    RoundPlans plans(rule, c.work, 0.1);
    CHECK(thrown<InvalidArgument>([&] { plans.next(ledgerAt({}, 0, 0, 1)); }) == c.problem);
    CHECK(thrown<SavedStateError>([&] { plans.requireSaved({.iterations = c.iterations}); }) ==
          "training state: " + c.problem);
  }
}

TEST_CASE("orders after a round") {
  Ledger ledger = ledgerAt({}, 4, 1, 2);
  ledger.plan.iterations = 3;
  ledger.workers[1].unmerged.batches = 1;
  ledger.verdict = Verdict::EpochOver;
  RoundOrders orders(2, /*alone=*/false);
  orders.train(0, ledger);
  CHECK(orders.of(0).what == Order::Do::Train);
  CHECK_FALSE(orders.of(0).counters);
  CHECK(orders.of(1).what == Order::Do::End);
  for (const auto what : {Order::Do::Train, Order::Do::End}) {
    orders.giveNext(what, ledger);
    for (const int w : {0, 1}) {
      CAPTURE(w);
      CHECK(orders.of(w).what == what);
      CHECK(orders.of(w).iterations == 3);
      CHECK(orders.of(w).merged == (w == 0));
      CHECK(orders.of(w).epochOver);
      REQUIRE(orders.of(w).counters);
      CHECK(orders.of(w).counters->iteration == 4);
      CHECK(orders.of(w).counters->epoch == 1);
    }
  }
  orders.giveAll({.what = Order::Do::Merge});
  CHECK(orders.of(1).what == Order::Do::Merge);
  CHECK_FALSE(orders.of(1).counters);
}
