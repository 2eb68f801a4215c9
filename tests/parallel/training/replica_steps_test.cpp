#include "muster/parallel/training/replica_steps.h"

#include "muster/core/optim/finite_gradient.h"
#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/strategies/any_strategy.h"
#include "muster/parallel/strategies/averaging.h"
#include "muster/parallel/strategies/outer_averaging.h"
#include "muster/parallel/strategies/synchronous_gradients.h"
#include "tests/parallel/no_exchange.h"
#include "tests/parallel/training/small_fit.h"
#include "tests/support/failure.h"
#include "tests/support/late_scores.h"
#include "tests/support/one_block_model.h"
#include "tests/support/recording_listener.h"
#include "tests/support/texts.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

Batch batchOf(const std::vector<float>& values, std::int64_t number) {
  Batch batch;
  Tensor& x = Batch::ensure(batch.features, "x", {static_cast<std::int64_t>(values.size()), 1});
  std::ranges::copy(values, x.data<float>());
  batch.stamp = {.sequence = number, .iteration = 10 + number};
  return batch;
}

/// One replica of a model, with which the test does a worker's steps.
struct Steps {
  explicit Steps(Model& model, const AnyStrategy& rule = Averaging{.frequency = 5},
                 Listeners workerListeners = {}, bool undoesMerges = false)
      : strategy(rule.make()),
        traits(strategy->traits(1)),
        shares(*strategy, traits, 1, undo.get(), undoesMerges),
        trainer(model),
        listeners{trainer, std::move(workerListeners), {}} {
    ReplicaThread* const own = &thread;
    runOnAll({&own, 1}, "could not be made", [&](ReplicaThread& t) { t.makeReplica(model); });
    steps.begin(shares, sums, exchange, listeners, ledgerAt({}, 0, 0, 1));
  }
  void train(const std::vector<float>& values, std::int64_t number) {
    Batch batch = batchOf(values, number);
    steps.train(batch);
  }
  Participant me() { return {0, exchange, thread.context(), times, thread.activity()}; }
  const Contribution& trained() { return steps.contribution(); }
  /// What was trained, in words.
  std::string counted() {
    const Contribution& c = trained();
    return fmt::format("{} batches, {} examples, weight {}, scores {}, plain {}{}", c.batches, c.examples,
                       c.weight, c.scoreSum, c.plainScoreSum, c.late ? ", late" : "");
  }

  const std::unique_ptr<Strategy> strategy;
  const StrategyTraits traits;
  NoExchange exchange{1};
  const std::unique_ptr<MergeUndo> undo = exchange.makeUndo({});
  MergeShares shares;
  PeerSums sums{1};
  FakeTrainer trainer;
  WorkerListeners listeners;
  TimeSheet times;
  ReplicaThread thread{"worker", 0, {}, 1};
  ReplicaSteps steps{thread, times};
};

/// Checks its numbers itself, or its updates give a penalty that is not finite.
struct Updating final : OneBlockModel {
  explicit Updating(bool refusing, Context* context = nullptr) : OneBlockModel(context), refuses(refusing) {}
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<Updating>(refuses, &context);
  }
  bool refusesNonFinite() const override { return refuses; }
  double update(const BatchStamp& /*stamp*/) override { return INFINITY; }
  std::span<StateBlock> updaterState() override { return {}; }

  const bool refuses;
};

/// A merge of one worker.
Decision merged() {
  Decision decision;
  decision.weights = {1};
  return decision;
}

float& parameterOf(Steps& one) {
  return Tensor(one.thread.replica().block(BlockKind::Parameters).values).data<float>()[0];
}

}  // namespace

TEST_CASE("steps add up: scores times weights, examples, batches, iterations") {
  // From 0: batch (2, 4) has mean 3 and score (4 + 16) / 2 / 2 = 5; half a step to 1.5, where batch (8) has
  // score 6.5^2 / 2 = 21.125.
  ToyModel model;
  Steps one(model);
  CHECK_FALSE(one.steps.hadBatch());
  one.train({2, 4}, 0);
  one.train({8}, 3);
  CHECK(one.steps.hadBatch());
  CHECK(one.counted() == "2 batches, 3 examples, weight 3, scores 31.125, plain 26.125");  // 2 * 5 + 21.125
  CHECK(one.trained().iteration == 14);  // finished after the last
  CHECK(one.times.own.batches == 2);
  CHECK(one.times.own.examples == 3);
  CHECK(one.steps.current().sequence == 3);
  // Another run begins with what was trained before it.
  Ledger start = ledgerAt({}, /*iteration=*/0, /*epoch=*/6, 1);
  start.workers[0].unmerged = {.weight = 4, .batches = 1};
  one.steps.begin(one.shares, one.sums, one.exchange, one.listeners, start);
  CHECK_FALSE(one.steps.hadBatch());
  CHECK(one.steps.current().epoch == 6);
  one.train({2}, 1);
  CHECK(one.trained().weight == 5);
  CHECK(one.trained().batches == 2);
}

TEST_CASE("the time that a step waits for other workers is no computing time") {
  ToyModel model;
  Steps one(model);
  NoExchange two(2);
  PeerSums sums(2);
  one.steps.begin(one.shares, sums, two, one.listeners, ledgerAt({}, 0, 0, 2));
  std::array values{2.0}, ofOther{3.0};
  model.control().onStep = [&](const Batch&) {
    const std::jthread other([&] {
      while (one.thread.activity().kind() != Activity::Kind::InExchange) std::this_thread::yield();
      std::this_thread::sleep_for(20ms);
      sums.sum(1, ofOther);
    });
    one.thread.context().peers()->sum(values);
  };
  const auto begun = std::chrono::steady_clock::now();
  one.train({2}, 0);
  CHECK(values.front() == 5);
  const auto waited = one.times.own.waitingForWorkers;
  CHECK(waited >= 20ms);
  CHECK(one.times.own.computing <= std::chrono::steady_clock::now() - begun - waited);
  model.control().onStep = {};
  one.train({2}, 1);
  CHECK(one.times.own.waitingForWorkers == waited);
}

TEST_CASE("workers that count their own updates stamp them; others stamp none") {
  std::vector<std::int64_t> stamped;
  const auto note = [&](const Model&, const BatchStamp& stamp) { stamped.push_back(stamp.update); };
  Batch batch = batchOf({2}, 0);
  batch.stamp.update = 9;  // of an earlier training
  ToyModel model;
  model.control().onUpdate = note;
  Steps(model).steps.train(batch);
  CHECK(stamped == std::vector<std::int64_t>{0});

  SmallFit fit(1, Averaging{.updaterState = UpdaterState::Reset},
               {.training = {.updater = Nesterovs{.learningRate = 0.5}}});
  fit.load();
  fit.model.control().onUpdate = note;
  Exchange& exchange = fit.replicas.exchange();
  OwnUpdates::find(exchange, 0)->count = 4;
  WorkerListeners none{fit.trainer, {}, {}};
  PeerSums sums(1);
  TimeSheet times;
  ReplicaThread& thread = fit.replicas.workers()[0]->thread();
  ReplicaSteps steps(thread, times);
  for (const LocalWork work : {LocalWork::Step, LocalWork::Gradient}) {
    const StrategyTraits traits{.localWork = work};
    MergeShares shares(fit.replicas.strategy(), traits, 1, nullptr, false);
    steps.begin(shares, sums, exchange, none, ledgerAt({}, 0, 0, 1));
    steps.train(batch);
    if (work == LocalWork::Gradient)
      steps.update({0, exchange, thread.context(), times, thread.activity()}, merged());
  }
  CHECK(stamped == std::vector<std::int64_t>{0, 5, 6});
}

TEST_CASE("in a step layers add up numbers with those of the workers that train in the same step") {
  ToyModel model;
  Steps one(model);
  Context& context = one.thread.context();
  CHECK(context.peers() == nullptr);  // no other worker
  NoExchange two(2);
  Ledger start = ledgerAt({}, 0, 0, 2);
  std::array values{2.0, 3.0};
  one.steps.begin(one.shares, one.sums, two, one.listeners, start);
  REQUIRE(context.peers() != nullptr);
  context.peers()->sum(values);
  CHECK(values == std::array{2.0, 3.0});  // the other one has left
  setArrivals(start, {.iterations = {1, 1}, .speeds = {1, 1}}, 0.1);
  one.steps.begin(one.shares, one.sums, two, one.listeners, start);
  CHECK_REFUSED(context.peers()->sum(values),
                "a layer adds up numbers between workers (synchronised batch normalisation), but with "
                "asynchronous arrivals they are never in the same step");
  one.steps.end();
  CHECK(context.peers() == nullptr);
}

TEST_CASE("the score of a step that runs on is read while the next step runs, or at the end") {
  LateScores model;
  Steps one(model);
  one.train({1, 1}, 0);
  CHECK(one.trained().batches == 0);
  one.train({2, 2}, 1);
  CHECK(one.counted() == "1 batches, 2 examples, weight 2, scores 2, plain 1");
  for (int again = 0; again < 2; ++again) {  // the second time nothing is left
    one.steps.finish();
    CHECK(one.counted() == "2 batches, 4 examples, weight 4, scores 6, plain 3");
  }
  CHECK(dynamic_cast<LateScores&>(one.thread.replica()).calls == "step1 step2 wait1 wait2 ");
  Steps listened(model, Averaging{}, {workerListener()});  // which get the score of a step after it
  listened.train({1, 1}, 0);
  CHECK(listened.trained().batches == 1);
}

TEST_CASE("a late score that is not finite fails in its own batch, before a failure of the next step") {
  const auto failed = [](const std::vector<float>& values) {
    LateScores model;
    Steps one(model);
    const auto problem = thrown<Error>([&] {
      for (std::size_t i = 0; i < values.size(); ++i) one.train({values[i]}, static_cast<std::int64_t>(i));
      one.steps.finish();
    });
    return fmt::format("batch {}: {}; {} counted", one.steps.current().sequence,
                       problem.substr(0, problem.find(';')), one.trained().batches);
  };
  const float nan = std::nanf("");
  const std::string why = "batch 1: the score became nan; 1 counted";
  CHECK(failed({1, nan, 3}) == why);
  CHECK(failed({1, nan}) == why);  // the last of a round
  CHECK(failed({1, nan, LateScores::kFailing}) == why);
  CHECK(failed({1, 2, LateScores::kFailing}) == "batch 2: the step failed; 2 counted");
}

TEST_CASE("before a merge a step of known weight counts without its score, which is added later") {
  LateScores model({.knowsWeights = true});
  Steps one(model);
  CHECK_FALSE(one.steps.countWithoutScore());  // there is none
  one.train({1, 1}, 0);
  CHECK(one.steps.countWithoutScore());
  CHECK(one.counted() == "1 batches, 2 examples, weight 2, scores 0, plain 0, late");
  one.steps.finish();
  CHECK(one.counted() == "1 batches, 2 examples, weight 2, scores 2, plain 1");
  LateScores unknown;
  Steps other(unknown);
  other.train({1, 1}, 0);
  CHECK_FALSE(other.steps.countWithoutScore());
}

TEST_CASE("a score that is not finite, or an impossible weight, fails in its own batch") {
  ToyModel model;
  Steps one(model);
  for (const double score : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    model.control().reportedScore = [=](const Batch&, double) { return score; };
    CHECK(contains(thrown<NonFiniteScore>([&] { one.train({2}, 4); }),
                   fmt::format("the score became {}", score)));
    CHECK(one.steps.current().sequence == 4);
    CHECK(one.trained().batches == 0);
  }
  model.control().reportedScore = {};
  for (const double weight : {-1.0, std::nan("")}) {
    model.control().reportedWeight = [=](const Batch&) { return weight; };
    CHECK_REFUSED(one.train({2}, 5),
                  fmt::format("a step's weight must be finite and not negative, got {}", weight));
  }
  model.control().reportedWeight = [](const Batch&) { return 0.0; };
  CHECK_NOTHROW(one.train({2}, 6));
}

TEST_CASE(
    "with gradients a gradient and statistics that are not finite fail; a value of the batch is named") {
  ToyModel model({.statistics = true});
  Steps one(model, SynchronousGradients{});
  const auto problem = [&](const std::vector<float>& values) {
    return thrown<NonFiniteScore>([&] { one.train(values, 0); });
  };
  CHECK_CONTAINS(problem({2, INFINITY}), "x holds inf: example 1 of the batch");
  model.control().reportedScore = [](const Batch&, double) { return 1; };
  CHECK_CONTAINS(problem({3e38f, -3e38f}), "statistics");  // their variance overflows
  parameterOf(one) = -3e38f;
  CHECK_CONTAINS(problem({3e38f}), "gradient");
}

TEST_CASE("listeners of workers get each step's score, with gradients after the update, with its penalty") {
  const auto steps = workerListener();
  ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}, .l2 = 0.5}});
  Steps one(model, Averaging{}, {steps});
  one.train({4}, 2);
  REQUIRE(steps->calls().size() == 1);
  CHECK(steps->calls()[0].score == 8);
  CHECK(steps->calls()[0].batch == 2);
  CHECK(steps->calls()[0].examples == 1);

  const auto updates = workerListener();
  Steps two(model, SynchronousGradients{}, {updates});
  parameterOf(two) = 2;
  two.train({4}, 0);
  CHECK(updates->calls().empty());
  CHECK(two.trained().batches == 1);
  CHECK(parameterOf(two) == 2);  // only the gradient, -2, is computed
  Decision decision = merged();
  decision.after.iteration = 1;
  two.steps.update(two.me(), decision);
  CHECK(parameterOf(two) == 2.5f);  // 2 - 0.5 * (-2 + 0.5 * 2)
  CHECK(two.steps.whole());
  CHECK(two.shares.penalty() == 1);  // 0.5 * 2^2 / 2
  REQUIRE(updates->calls().size() == 1);
  CHECK(updates->calls()[0].score == 3);  // 2^2 / 2, and the penalty
  // A worker that has trained nothing tells no listener.
  two.steps.contribution() = {};
  decision.round.epoch = 3;
  decision.after.iteration = 8;
  two.steps.update(two.me(), decision);
  CHECK(updates->calls().size() == 1);
  CHECK(two.steps.current().epoch == 3);
  CHECK(two.steps.current().iteration == 7);
}

TEST_CASE("a penalty that is not finite fails in the step's batch") {
  Updating model(/*refusing=*/false);
  Steps one(model, SynchronousGradients{});
  one.train({4}, 0);
  CHECK_CONTAINS(thrown<NonFiniteScore>([&] { one.steps.update(one.me(), merged()); }),
                 "the score became inf");
}

TEST_CASE("a replica whose update failed is not whole; one that refused it is") {
  ToyModel model;
  Steps one(model, SynchronousGradients{});
  const Decision decision = merged();
  one.train({4}, 0);
  model.control().onUpdate = [](const Model&, const BatchStamp&) { throw UpdateRefused("too large"); };
  CHECK_THROWS_AS(one.steps.update(one.me(), decision), UpdateRefused);
  CHECK(one.steps.whole());
  CHECK(one.shares.failed());
  CHECK_FALSE(one.shares.mergeFailed());
  model.control().onUpdate = [](const Model&, const BatchStamp&) { throw Error("boom"); };
  CHECK_THROWS_AS(one.steps.update(one.me(), decision), Error);
  CHECK_FALSE(one.steps.whole());
}

TEST_CASE("a model with updates of its own is checked before a merge") {
  ToyModel model({.training = {.updater = Nesterovs{.learningRate = 0.5}}, .statistics = true});
  Steps one(model);
  const auto problem = [&] { return thrown<NonFiniteScore>([&] { one.steps.lookAtReplica(); }); };
  one.thread.replica().updaterState();
  CHECK(problem() == "");
  CHECK(one.trained().largest == 0);
  parameterOf(one) = -3;
  CHECK(problem() == "");
  CHECK(one.trained().largest == 3);
  Model& replica = one.thread.replica();
  for (const StateBlock& block : {replica.updaterState()[0], replica.block(BlockKind::Statistics)}) {
    float& value = Tensor(block.values).data<float>()[0];
    value = INFINITY;
    CHECK_CONTAINS(problem(), block.kind == BlockKind::Statistics ? "statistics" : "updater's numbers");
    value = 0;
  }
  parameterOf(one) = INFINITY;
  CHECK(problem().starts_with("after its steps the parameters of p are not finite: element 0 is inf"));
  Steps gradients(model, SynchronousGradients{});
  parameterOf(gradients) = INFINITY;  // its updates check it
  CHECK_NOTHROW(gradients.steps.lookAtReplica());
}

TEST_CASE("the largest magnitude is found if a merge may overflow and can be undone") {
  for (const bool undoes : {false, true})
    for (const bool extrapolates : {false, true}) {
      Updating model(/*refusing=*/true);
      Steps one(model, extrapolates ? AnyStrategy(OuterAveraging{}) : Averaging{}, {}, undoes);
      parameterOf(one) = -3;
      one.steps.lookAtReplica();
      CHECK(one.trained().largest == (undoes && extrapolates ? 3 : 0));
    }
}
