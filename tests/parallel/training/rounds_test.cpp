#include "muster/parallel/training/rounds.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "muster/core/device/context.h"
#include "muster/parallel/runtime/time_sheet.h"
#include "muster/parallel/training/merge_shares.h"
#include "tests/parallel/no_exchange.h"
#include "tests/support/counting_rule.h"

using namespace muster;
using namespace std::chrono_literals;
using namespace muster::test;

namespace {

/// The rounds of one or more workers, of two iterations or one gradient, whose threads do as the test says.
struct Training {
  explicit Training(int workers, LocalWork work = LocalWork::Step, bool joins = false)
      : rule({.localWork = work}),
        traits(rule.traits(workers)),
        exchange(workers),
        peers(workers),
        place{.local = workers},
        options{.strategy = rule,
                .traits = traits,
                .stop = stop,
                .learningRate = 0.1,
                .coordinatorJoinsEveryRound = joins} {
    decisions.prepare();
  }

  CountingRule rule;
  const StrategyTraits traits;
  NoExchange exchange;
  const std::unique_ptr<MergeUndo> undo = exchange.makeUndo({});
  PeerSums peers;
  std::atomic<bool> stop{false};
  const NodePlace place;
  const RoundOptions options;
  MergeShares shares{rule, traits, place.local, undo.get(), false};
  RoundDecisions decisions{place, options, ledgerAt({}, 0, 0, place.local), shares};
  Rounds rounds{place, decisions, peers, shares};
};

/// A worker that trains the given number of batches in each epoch, on a thread of its own, and notes its
/// orders.
struct Trainee {
  Trainee(Training& in, int worker, std::int64_t batches)
      : training(in), perEpoch(batches), me{worker, in.exchange, context, times, activity} {}

  /// Carries out orders until the end.
  void run() {
    for (Order order = training.rounds.first(me.worker);; order = training.rounds.next(me, contribution)) {
      note(order);
      if (order.what == Order::Do::End) return;
      if (order.what == Order::Do::Train) train(order);
      if (order.what == Order::Do::Merge) training.shares.merge(me, training.decisions.decision());
      if (order.what == Order::Do::Visit) (*order.visit)(me.worker);
      if (order.what != Order::Do::Update) continue;
      training.shares.afterReduction(me, training.decisions.decision());
      training.shares.setUpdated(me.worker, 0.5);
    }
  }
  void train(const Order& order) {
    if (order.merged) contribution = {};
    if (order.epochOver) trained = 0;
    for (std::int64_t i = 0; i < order.iterations && !contribution.ended; ++i)
      if (trained == perEpoch)
        contribution.ended = true;
      else
        contribution.iteration = ++iteration, ++trained, ++contribution.batches, contribution.weight += 4;
  }
  void note(const Order& order) {
    static const std::map<Order::Do, std::string> kNames = {{Order::Do::Train, "train"},
                                                            {Order::Do::Merge, "merge"},
                                                            {Order::Do::Update, "update"},
                                                            {Order::Do::Visit, "visit"},
                                                            {Order::Do::End, "end"}};
    std::string text = kNames.at(order.what);
    if (order.what == Order::Do::Train) text += fmt::format(" {}", order.iterations);
    if (order.counters) text += fmt::format(" {}/{}", order.counters->iteration, order.counters->epoch);
    if (order.what == Order::Do::Train && order.epochOver) text += " new epoch";
    orders.push_back(text);
  }

  Training& training;
  const std::int64_t perEpoch;
  Context context;
  TimeSheet times;
  Activity activity;
  Participant me;
  Contribution contribution;
  std::int64_t trained = 0, iteration = 0;
  std::vector<std::string> orders;
};

using Orders = std::vector<std::string>;

}  // namespace

TEST_CASE("an order to train follows from the ledger") {
  Ledger ledger = ledgerAt({}, 4, 1, 2);
  ledger.plan.iterations = 3;
  ledger.workers[1].unmerged.batches = 1;
  ledger.verdict = Verdict::EpochOver;
  for (const int w : {0, 1}) {
    const Order order = orderToTrain(ledger, w, /*alone=*/false);
    CHECK(order.what == Order::Do::Train);
    CHECK(order.iterations == 3);
    CHECK(order.merged == (w == 0));
    CHECK(order.epochOver);
    CHECK_FALSE(order.counters);
  }
}

TEST_CASE("a worker trains and merges in turns; the coordinator has its turn at the ends of epochs") {
  Training training(1);
  training.rounds.begin(2);
  Trainee worker(training, 0, 3);
  std::jthread thread([&] { worker.run(); });
  REQUIRE(training.rounds.await());
  CHECK(training.decisions.verdict() == Verdict::EpochOver);
  CHECK(training.decisions.ledger().iteration == 3);
  CHECK_FALSE(training.decisions.isOver());
  training.rounds.resume();
  REQUIRE(training.rounds.await());
  CHECK(training.decisions.isOver());
  training.rounds.resume();
  thread.join();
  // 3 batches are a round of 2 and the last one; iterations and epochs are those that are finished.
  CHECK(worker.orders == Orders{"train 2", "merge", "train 2 2/0", "merge", "train 2 3/1 new epoch", "merge",
                                "train 2 5/1", "merge", "end 6/2"});
  CHECK(training.rule.landed == 4);
}

TEST_CASE("a worker does not count the time of listeners as waiting, and has not waited for less than none") {
  Training training(1);
  training.rounds.begin(2);
  Trainee worker(training, 0, 4);  // two rounds an epoch, of which the coordinator joins the second
  worker.times.own.waitingForWorkers = 3h;
  std::jthread thread([&] { worker.run(); });
  for (int epoch = 0; epoch < 2; ++epoch) {
    REQUIRE(training.rounds.await());
    training.rounds.resume(1h);
  }
  thread.join();
  // What it has waited in truth, less than an hour, and two hours taken out.
  CHECK(worker.times.own.waitingForWorkers > 1h);
  CHECK(worker.times.own.waitingForWorkers < 2h);

  Training once(1);
  once.rounds.begin(1);
  Trainee other(once, 0, 2);
  std::jthread running([&] { other.run(); });
  REQUIRE(once.rounds.await());
  once.rounds.resume(1h);  // longer than the worker has waited
  running.join();
  CHECK(other.times.own.waitingForWorkers >= 0h);
}

TEST_CASE("with gradients each worker updates its replica once all have merged") {
  Training training(2, LocalWork::Gradient);
  training.rounds.begin(1);
  Trainee first(training, 0, 1), second(training, 1, 2);
  {
    std::jthread one([&] { first.run(); }), two([&] { second.run(); });
    REQUIRE(training.rounds.await());
    training.rounds.resume();
  }
  // The first worker has no batch in the second round, and the second none in the third.
  const Orders expected{"train 1", "merge",  "update",      "train 1 1/0",
                        "merge",   "update", "train 1 2/0", "end 2/1"};
  CHECK(first.orders == expected);
  CHECK(second.orders == expected);
  CHECK(training.rule.landed == 4);
  CHECK(training.rule.reduced == 4);
  CHECK(training.shares.penalty() == 0);  // of the last round, which has no update
}

TEST_CASE("in the coordinator's turn it sends workers on visits, which it awaits") {
  Training training(2, LocalWork::Step, /*joins=*/true);
  training.rounds.begin(1);
  Trainee first(training, 0, 2), second(training, 1, 2);
  std::atomic<int> visits{0};
  int meanwhile = 0;
  {
    std::jthread one([&] { first.run(); }), two([&] { second.run(); });
    REQUIRE(training.rounds.await());
    for (int i = 0; i < 2; ++i)
      CHECK(training.rounds.visit([&](int worker) { visits += worker + 1; }, [&] { ++meanwhile; }));
    CHECK(visits == 6);
    CHECK(meanwhile == 2);
    training.rounds.resume();
    REQUIRE(training.rounds.await());
    training.rounds.resume();
  }
  const Orders expected{"train 2", "merge", "visit", "visit", "train 2 2/0", "end 2/1"};
  CHECK(first.orders == expected);
  CHECK(second.orders == expected);
}

TEST_CASE("an abort ends the run for those that wait, without counters") {
  Training training(2);
  training.rounds.begin(1);
  Trainee waiting(training, 0, 2);
  std::jthread thread([&] { waiting.run(); });
  std::this_thread::sleep_for(2ms);  // the other worker never comes
  training.rounds.abort();
  thread.join();
  CHECK(waiting.orders == Orders{"train 2", "end"});
  CHECK_FALSE(training.rounds.await());
  CHECK_FALSE(training.rounds.visit([](int) {}, [] {}));
  training.decisions.close();
  CHECK(training.decisions.ledger().rounds == 0);
}

TEST_CASE("a round that all have merged is committed, also if it is aborted before its end") {
  Training training(1, LocalWork::Step, /*joins=*/true);
  training.rounds.begin(1);
  Trainee worker(training, 0, 2);
  std::jthread thread([&] { worker.run(); });
  REQUIRE(training.rounds.await());
  training.rounds.abort();
  training.rounds.resume();
  thread.join();
  training.decisions.close();
  CHECK(worker.orders == Orders{"train 2", "merge", "end"});
  CHECK(training.decisions.ledger().iteration == 2);
  CHECK(training.decisions.ledger().rounds == 1);
}
