#include "muster/parallel/training/model_filling.h"

#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/strategies/outer_averaging.h"
#include "muster/parallel/strategies/synchronous_gradients.h"
#include "tests/parallel/training/small_fit.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Two replicas, and the filling of their model.
struct Filled {
  explicit Filled(const AnyStrategy& rule = Averaging{}, const ToyOptions& toy = {})
      : fit(2, rule, toy), traits(fit.replicas.traits()) {
    fit.load();
    filling.begin();
  }
  float mergedValue(BlockKind kind = BlockKind::Parameters) {
    const auto blocks = fit.replicas.exchange().blocks();
    const auto values = filling.mergedValues();
    for (std::size_t b = 0; b < values.size(); ++b)
      if (blocks[b].kind == kind) return values[b].data<float>()[0];
    return -1;
  }

  SmallFit fit;
  StrategyTraits traits;
  ModelFilling filling{fit.model, fit.replicas.exchange(), fit.replicas.place(), traits,
                       fit.replicas.workers()};
};

}  // namespace

TEST_CASE("a model that was filled is unchanged until it, or the merge, is another one") {
  Filled one;
  CHECK_FALSE(one.filling.filled());
  CHECK_FALSE(one.filling.isUnchanged());  // equal, but not filled
  one.fit.merged() = 5;
  CHECK(one.filling.fill(/*afterFailure=*/false, /*together=*/true));
  CHECK(one.fit.parameter() == 5);
  CHECK(one.filling.filled());
  CHECK(one.filling.isUnchanged());
  one.fit.model.setParameters({4});
  CHECK_FALSE(one.filling.isUnchanged());
  one.fit.model.setParameters({5});
  CHECK(one.filling.isUnchanged());
  one.fit.merged() = 6;
  CHECK_FALSE(one.filling.isUnchanged());
}

TEST_CASE("a resumed model counts as filled") {
  Filled one;
  one.filling.setFilled();
  CHECK(one.filling.filled());
  CHECK(one.filling.isUnchanged());
}

TEST_CASE("the merged values are the merged copies, or for parameters the block that the rule names") {
  Filled one(OuterAveraging{.momentum = 0.9});
  one.fit.merged() = 5;
  one.fit.replica(0).setParameters({7});
  one.fit.replicas.exchange().strategyBlock("outer momentum").values.front().data<float>()[0] = 2;
  for (const auto& worker : one.fit.replicas.workers()) worker->setWhole(false);
  CHECK(one.mergedValue() == 5);
  one.traits.modelSource = "outer momentum";
  CHECK(one.mergedValue() == 2);
}

TEST_CASE("with gradients they are those of the first whole replica, except its statistics") {
  Filled one(SynchronousGradients{},
             {.training = {.updater = Nesterovs{.learningRate = 0.5}}, .statistics = true});
  one.fit.merged() = 5;
  one.fit.merged(BlockKind::Statistics) = 3;
  one.fit.replica(0).setParameters({7});
  one.fit.replica(1).setParameters({8});
  CHECK(one.mergedValue() == 7);
  CHECK(one.mergedValue(BlockKind::Statistics) == 3);
  one.fit.replicas.exchange().block(BlockKind::UpdaterState).replicas[0].data<float>()[0] = 2;
  CHECK(one.mergedValue(BlockKind::UpdaterState) == 2);
  one.fit.replicas.workers()[0]->setWhole(false);
  CHECK(one.mergedValue() == 8);
  one.fit.replicas.workers()[1]->setWhole(false);
  CHECK(one.filling.mergedValues().empty());
  CHECK_FALSE(one.filling.fill(/*afterFailure=*/true, false));
  one.filling.setFilled();
  CHECK_FALSE(one.filling.isUnchanged());
}

TEST_CASE("if a merge resets the updater, the updates are those since then") {
  const ToyOptions momentum{.training = {.updater = Nesterovs{.learningRate = 0.5}}};
  CHECK(Filled(Averaging{}, momentum).filling.updatesAfterReset() == std::nullopt);
  Filled one(Averaging{.updaterState = UpdaterState::Reset}, momentum);
  OwnUpdates& own = *OwnUpdates::find(one.fit.replicas.exchange(), 0);
  own = {.count = 4, .mergedCopyReset = 0};
  CHECK(one.filling.updatesAfterReset() == std::nullopt);
  own.mergedCopyReset = 1;
  CHECK(one.filling.updatesAfterReset() == 0);
  one.traits.localWork = LocalWork::Gradient;
  CHECK(one.filling.updatesAfterReset() == 4);
  one.traits.updaterState = UpdaterState::Average;
  CHECK(one.filling.updatesAfterReset() == std::nullopt);
}
