// User-defined strategies, with models whose numbers can be computed by hand.

#include "muster/core/data/in_memory.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/training/internals.h"
#include "tests/parallel/builder_of.h"
#include "tests/support/failure.h"
#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

using Place = StrategyBlock::Place;

/// Momentum between merges: D = momentum D + (mean - w), w = w + D.
struct BlockMomentum {
  double momentum = 0.5;
  std::int64_t frequency = 1;

  void validate() const {
    require(momentum >= 0 && momentum < 1, "blockMomentum: momentum must be in [0, 1), got {}", momentum);
  }
  std::unique_ptr<Strategy> make() const;
};

class BlockMomentumStrategy final : public Strategy {
 public:
  explicit BlockMomentumStrategy(const BlockMomentum& options) : options_(options) {}
  std::string describe() const override { return fmt::format("block momentum {}", options_.momentum); }
  std::vector<StrategyBlock> blocks(int) const override {
    return {{.name = "momentum"}, {.name = "mean", .dtype = DType::Float64, .saved = false}};
  }
  RoundPlan plan(const TrainingProgress&) override { return {.iterations = options_.frequency}; }
  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto merged = std::span<const Tensor>(parameters.mergedCopies);
    const auto all = Fragment::whole(parameters.mergedCopy().elements());
    const auto mean = ops.own("mean"), momentum = ops.own("momentum");
    ops.mean(parameters.replicas, round.weights, mean, all);
    ops.combine(momentum, {{options_.momentum, momentum}, {1, mean}, {-1, merged}}, all);
    ops.combine(merged, {{1, merged}, {1, momentum}}, all);
    ops.writeBack(merged, parameters.replicas, 0, all);
  }

 private:
  const BlockMomentum options_;
};

std::unique_ptr<Strategy> BlockMomentum::make() const {
  return std::make_unique<BlockMomentumStrategy>(*this);
}

ToyModel halving() {
  return ToyModel({.training = {.updater = Sgd{.learningRate = 0.5}}});
}

// From p = 0, worker 0 on {2}, worker 1 on {6}, learning rate 0.5, momentum 0.5:
//   replicas 1 and 3, mean 2: D = 2, p = 2;
//   replicas 2 and 4, mean 3: D = 1 + 1 = 2, p = 4;
//   replicas 3 and 5, mean 4: D = 1 + 0 = 1, p = 5;
//   replicas 3.5 and 5.5, mean 4.5: D = 0.5 - 0.5 = 0, p = 5.
const std::vector<float> kRounds = {2, 6, 2, 6};

}  // namespace

TEST_CASE("a user-defined strategy with momentum equals values worked out by hand, on all devices") {
  for (const int devices : {0, 1, 2}) {
    CAPTURE(devices);
    auto model = halving();
    auto data = ToyIterator::ofValues(kRounds);
    auto wrapper = builderOf(model, 2, BlockMomentum{}).internals({.pretendedDevices = devices}).build();
    CHECK(
        wrapper.plan() ==
        fmt::format("2 workers on cpu (1 thread each, not pinned), block momentum 0.5{}: 2 batches per round",
                    devices == 0   ? ""
                    : devices == 1 ? ", merged on cpu"
                                   : ", merged over 2 devices by peer copies"));
    wrapper.fit(data);
    CHECK(model.parameters()[0] == 4);
    wrapper.fit(data);  // continues with its momentum
    CHECK(model.parameters()[0] == 5);
    REQUIRE(model.strategyState().size() == 1);
    CHECK(model.strategyState()[0].name == "momentum");
    CHECK(model.strategyState()[0].values.data<float>()[0] == 0);
  }
}

TEST_CASE(
    "a strategy without blocks leaves none, and training without a wrapper discards a strategy's state") {
  auto data = ToyIterator::ofValues(kRounds);
  auto model = halving();
  builderOf(model, 2, BlockMomentum{}).build().fit(data);
  auto another = builderOf(model, 2, BlockMomentum{}).build();
  another.fit(data);
  CHECK(model.parameters()[0] == 5);  // continues with the model's momentum
  builderOf(model, 2, Averaging{}).build().fit(data);
  CHECK(model.strategyState().empty());
  another.fit(data);
  CHECK_FALSE(model.strategyState().empty());
  model.fit(data);
  CHECK(model.strategyState().empty());
}

TEST_CASE(
    "a user-defined strategy's state is in the model's file, and a training from there continues with it") {
  MultiLayerNetwork network(
      {.seed = 1, .updater = Sgd{.learningRate = 0.5}, .inputShape = {2}, .layers = {Output{.classes = 2}}});
  network.init();
  Tensor features = Tensor::empty({8, 2});
  for (int i = 0; auto& feature : features.span<float>()) feature = static_cast<float>(i++) - 8;
  InMemoryDataSetIterator data(features, Tensor::zeros({8}, DType::Int64), 2);
  const auto trained = [&](MultiLayerNetwork& model) {
    builderOf(model, 2, BlockMomentum{}).build().fit(data);
    return stateBits(model);
  };
  trained(network);
  const TemporaryDirectory directory;
  const auto file = directory / "model.safetensors";
  network.save(file);
  const auto contents = readSafetensors(file);
  const Tensor* saved = contents.find("updater.strategy.momentum");
  REQUIRE(saved != nullptr);
  CHECK(std::ranges::any_of(saved->span<float>(), [](float element) { return element != 0; }));
  const auto loaded = MultiLayerNetwork::load(file);
  CHECK(trained(*loaded) == trained(network));
}

TEST_CASE("options that are out of range, or given twice in different ways, are refused at build()") {
  auto model = halving();
  const auto refusal = [](auto builder) { return thrown<InvalidArgument>([&] { builder.build(); }); };
  CHECK(refusal(builderOf(model, 2, BlockMomentum{.momentum = 1})) ==
        "blockMomentum: momentum must be in [0, 1), got 1");
  CHECK(refusal(builderOf(model, 2, Averaging{}).averagingFrequency(3)) ==
        "averagingFrequency: the strategy has that among its own options; give it in strategy(...)");
  CHECK(refusal(builderOf(model, 2, Averaging{}).averageUpdaters(true)) ==
        "averageUpdaters: the strategy has that among its own options; give it in strategy(...)");
  auto data = ToyIterator::ofValues(kRounds);
  CHECK(
      thrown<TrainingError>([&] { builderOf(model, 2, BlockMomentum{.frequency = 0}).build().fit(data); }) ==
      "the first round could not be planned: the strategy's plan: a round must have at least 1 iteration, "
      "got 0");
}
