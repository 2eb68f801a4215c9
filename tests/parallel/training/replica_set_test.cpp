#include "muster/parallel/training/replica_set.h"

#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/strategies/outer_averaging.h"
#include "muster/parallel/strategies/synchronous_gradients.h"
#include "tests/parallel/training/small_fit.h"
#include "tests/support/moving_model.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

const ToyOptions kMomentum{.training = {.updater = Nesterovs{.learningRate = 0.5, .momentum = 0.5}}};

/// A rule that merges nothing.
struct OwnRule {
  struct Rule final : Strategy {
    explicit Rule(const OwnRule& of) : traits_(of.traits), blocks_(of.blocks) {}
    std::string describe() const override { return "own"; }
    StrategyTraits traits(int) const override { return traits_; }
    std::vector<StrategyBlock> blocks(int) const override { return blocks_; }
    RoundPlan plan(const TrainingProgress&) override { return {}; }

    const StrategyTraits traits_;
    const std::vector<StrategyBlock> blocks_;
  };
  void validate() const {}
  std::unique_ptr<Strategy> make() const { return std::make_unique<Rule>(*this); }

  StrategyTraits traits = {};
  std::vector<StrategyBlock> blocks = {};
};

}  // namespace

TEST_CASE("replicas and merged copies take the model's state, and the model takes the merged copies") {
  SmallFit fit(2);
  fit.model.setParameters({3});
  fit.model.setCounters(7, 2);
  CHECK(fit.load());
  CHECK(fit.merged() == 3);
  for (const std::size_t w : {0, 1}) {
    CHECK(fit.replica(w).parameters().front() == 3);
    CHECK(fit.replica(w).iteration() == 7);
    CHECK(fit.replica(w).epoch() == 2);
  }
  fit.merged() = 5;
  CHECK(fit.fill());
  CHECK(fit.parameter() == 5);
}

TEST_CASE("the next training continues from the replicas, unless the user has changed the model") {
  SmallFit fit(2);
  CHECK(fit.load());
  fit.merged() = 5;
  fit.replica(1).setParameters({6});
  REQUIRE(fit.fill());
  fit.model.setCounters(9, 1);
  CHECK_FALSE(fit.load());
  CHECK(fit.replica(1).parameters().front() == 6);
  CHECK(fit.replica(1).iteration() == 9);
  fit.merged() = 7;  // the model holds an earlier merge
  CHECK(fit.load());
  CHECK(fit.merged() == 5);
  CHECK_FALSE(fit.load());
  fit.model.setParameters({1});
  CHECK(fit.load());
  CHECK(fit.replica(1).parameters().front() == 1);
  CHECK(fit.merged() == 1);
}

TEST_CASE("after a failed training the next one starts from the model") {
  SmallFit fit;
  CHECK(fit.load());
  REQUIRE(fit.fill());
  fit.replica(0).setParameters({6});
  fit.replicas.setUntrained();
  CHECK(fit.load());
  CHECK(fit.replica(0).parameters().front() == 0);
}

TEST_CASE("a resumed training starts from the model also if replicas could continue") {
  SmallFit fit;
  CHECK(fit.load());
  CHECK(fit.load());  // equal, but the model was not filled
  REQUIRE(fit.fill());
  fit.replica(0).setParameters({6});
  CHECK(fit.load({.any = true}));
  CHECK(fit.replica(0).parameters().front() == 0);
  SmallFit resumed;
  CHECK(resumed.load({.any = true}));
  CHECK_FALSE(resumed.load());  // it counts as filled
}

TEST_CASE("updaters' states that workers keep are averaged by the examples that each has trained") {
  SmallFit fit(2, Averaging{.updaterState = UpdaterState::Keep}, kMomentum);
  fit.load({.any = true});
  fit.ledger.workers = {{.examples = 1}, {.examples = 2, .unmerged = {.examples = 1}}};
  const SharedBlock& velocity = fit.replicas.exchange().block(BlockKind::UpdaterState);
  velocity.replicas[0].data<float>()[0] = 4;
  velocity.replicas[1].data<float>()[0] = 8;
  REQUIRE(fit.fill());
  CHECK(fit.model.updaterState("velocity").front() == 7);  // (1 * 4 + 3 * 8) / 4
}

TEST_CASE("with gradients the model takes the parameters of a replica that is whole") {
  SmallFit fit(2, SynchronousGradients{}, {.training = kMomentum.training, .statistics = true});
  fit.load();
  fit.merged() = 9;  // merged copies lag behind: updates change replicas alone
  fit.merged(BlockKind::Statistics) = 3;
  fit.replicas.exchange().block(BlockKind::UpdaterState).replicas[1].data<float>()[0] = 2;
  fit.replica(0).setParameters({4});
  fit.replica(1).setParameters({6});
  fit.replicas.workers()[0]->setWhole(false);
  CHECK_FALSE(fit.replicas.workers()[0]->whole());
  CHECK(fit.fill(/*afterFailure=*/true, false));
  CHECK(fit.parameter() == 6);
  CHECK(fit.model.updaterState("velocity").front() == 2);
  CHECK(fit.model.block(BlockKind::Statistics).values.data<float>()[0] == 3);
  fit.replicas.workers()[1]->setWhole(false);
  fit.replica(1).setParameters({8});
  CHECK_FALSE(fit.fill(true, false));
  CHECK(fit.parameter() == 6);
}

TEST_CASE("the model takes the parameters from the block that the rule names") {
  SmallFit fit(1, OwnRule{.traits = {.modelSource = "centre"}, .blocks = {{.name = "centre"}}});
  fit.load();
  fit.merged() = 5;
  fit.replicas.exchange().strategyBlock("centre").values.front().data<float>()[0] = 2;
  REQUIRE(fit.fill());
  CHECK(fit.parameter() == 2);
}

TEST_CASE("if a merge resets the updater, the updates are those since then") {
  CHECK(SmallFit(1, Averaging{}, kMomentum).replicas.updatesAfterReset() == std::nullopt);
  SmallFit fit(1, Averaging{.updaterState = UpdaterState::Reset}, kMomentum);
  OwnUpdates& own = *OwnUpdates::find(fit.replicas.exchange(), 0);
  own = {.count = 4, .mergedCopyReset = 0};
  CHECK(fit.replicas.updatesAfterReset() == std::nullopt);
  own.mergedCopyReset = 1;
  CHECK(fit.replicas.updatesAfterReset() == 0);
  SmallFit gradients(
      1, OwnRule{.traits = {.localWork = LocalWork::Gradient, .updaterState = UpdaterState::Reset}},
      kMomentum);
  OwnUpdates::find(gradients.replicas.exchange(), 0)->count = 4;
  CHECK(gradients.replicas.updatesAfterReset() == 4);
}

TEST_CASE("the strategy's blocks begin anew once the model has changed") {
  SmallFit fit(1, OuterAveraging{.momentum = 0.9});
  fit.load();
  float& momentum = fit.replicas.exchange().strategyBlock("outer momentum").values.front().data<float>()[0];
  momentum = 2;
  REQUIRE(fit.fill());
  REQUIRE(fit.model.strategyState().size() == 1);
  CHECK(fit.model.strategyState().front().values.data<float>()[0] == 2);
  CHECK_FALSE(fit.load());
  CHECK(momentum == 2);
  fit.model.setParameters({1});
  CHECK(fit.load());
  CHECK(momentum == 0);
}

TEST_CASE("numbers of a device that are not finite do not reach the model") {
  SmallFit fit(2, Averaging{}, {}, {.pretendedDevices = 2});
  CHECK(fit.replicas.merging() == "merged over 2 devices by peer copies");
  fit.load();
  fit.merged() = std::nanf("");
  CHECK(thrown<NonFiniteScore>([&] {
          fit.fill();
        }).starts_with("after the last merge the parameters of p are not finite: element 0 is nan"));
  CHECK(fit.parameter() == 0);
}

TEST_CASE("a replica that changes its memory is refused by name") {
  MovingModel model;
  ReplicaSet replicas(model, std::vector<Placement>(2), 1, Averaging{});
  CHECK_FALSE(replicas.made());
  CHECK(replicas.merging() == "");
  CHECK(replicas.undo() == nullptr);
  replicas.make();
  CHECK(replicas.made());
  CHECK(replicas.place().workers() == 2);
  CHECK_NOTHROW(replicas.begin({}));
  model.move();  // the user's model may move between two calls
  CHECK_NOTHROW(replicas.begin({}));
  dynamic_cast<MovingModel&>(replicas.workers()[1]->thread().replica()).move();
  CHECK(thrown<InvalidArgument>([&] { replicas.begin({}); })
            .starts_with("the block parameters of the replica of worker 1 on cpu is in other memory than "
                         "before: blocks() must always return the same memory"));
  model.always = true;
  CHECK(thrown<InvalidArgument>([&] {
          replicas.begin({});
        }).starts_with("the block parameters of the model is in other memory than before"));
}
