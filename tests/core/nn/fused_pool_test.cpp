#include "muster/core/nn/computation_graph.h"
#include "muster/core/ops/conv2d.h"
#include "tests/core/nn/test.h"
#include "tests/support/network_probe.h"

namespace muster {
namespace {

const Shape kImage{1, 16, 18};
constexpr std::int64_t kClasses = 5;

/// Whether convolutions of such images include poolings here.
bool poolsInPlan() {
  Context context;
  auto plan =
      planConv2d({.batch = 32, .height = 16, .width = 18, .outChannels = 9, .kernel = {5, 5}}, context);
  return plan->fusePool({.batch = 32, .channels = 9, .height = 12, .width = 14});
}

/// Three steps from equal parameters lead to equal scores and equal parameters, bit for bit.
void checkSameTraining(Network& one, Network& two) {
  one.init();
  two.init();
  const Tensor& from = one.block(BlockKind::Parameters).values;
  Tensor to = two.block(BlockKind::Parameters).values;
  REQUIRE(from.bytes() == to.bytes());
  std::memcpy(to.raw(), from.raw(), from.bytes());
  for (std::uint64_t i = 0; i < 3; ++i) {
    auto batch = test::classBatch(kImage, 32, kClasses, 11 + i);
    batch.stamp.iteration = static_cast<std::int64_t>(i);
    const StepScore first = one.step(batch).wait(), second = two.step(batch).wait();
    CHECK(first.score == second.score);
    CHECK(std::memcmp(from.raw(), to.raw(), from.bytes()) == 0);
  }
}

MultiLayerConfiguration layers(std::vector<Layer> some) {
  MultiLayerConfiguration all{
      .seed = 5, .updater = Sgd{.learningRate = 0.1}, .inputShape = kImage, .layers = std::move(some)};
  all.layers.push_back(Output{.classes = kClasses});
  return all;
}

constexpr Activation kNone = Activation::Identity;

Conv2d convolution(std::int64_t channels, Activation activation) {
  return {.outChannels = channels, .kernel = {5, 5}, .activation = activation};
}

TEST_CASE("a convolution that pools its own output has the bits of separate layers, and needs less memory") {
  for (const auto activation : {kNone, Activation::ReLU}) {
    MultiLayerNetwork together(layers(
        {convolution(9, activation), MaxPool2d{}, convolution(3, activation), MaxPool2d{.kernel = {1, 2}}}));
    const ActivationLayer between{.activation = activation};
    MultiLayerNetwork apart(layers({convolution(9, kNone), between, MaxPool2d{}, convolution(3, kNone),
                                    between, MaxPool2d{.kernel = {1, 2}}}));
    checkSameTraining(together, apart);
    // All activations and gradients take less than the first convolution's output alone.
    if (poolsInPlan()) CHECK(test::activationBytes(together) < 4 * 32 * 9 * 12 * 14);
  }
}

TEST_CASE("an activation that pooling does not commute with is computed between convolution and pooling") {
  MultiLayerNetwork together(layers({convolution(9, Activation::Tanh), MaxPool2d{}}));
  MultiLayerNetwork apart(
      layers({convolution(9, kNone), ActivationLayer{.activation = Activation::Tanh}, MaxPool2d{}}));
  checkSameTraining(together, apart);
}

TEST_CASE("a convolution whose output has other readers does not include the pooling") {
  const auto graph = [](bool apart) {
    ComputationGraphConfiguration all{
        .seed = 5, .updater = Sgd{.learningRate = 0.1}, .inputs = {{.name = "x", .shape = kImage}}};
    all.add("conv", convolution(9, kNone), {"x"});
    if (apart) all.add("same", ActivationLayer{.activation = kNone}, {"conv"});
    all.add("pool", MaxPool2d{}, {apart ? "same" : "conv"});
    all.add("small", GlobalPool2d{.kind = PoolKind::Max}, {"pool"});
    all.add("mean", GlobalPool2d{}, {"conv"});
    all.add("sum", Combine{}, {"small", "mean"});
    all.addOutput(all.add("class", Output{.classes = kClasses}, {"sum"}));
    return all;
  };
  ComputationGraph together(graph(false)), apart(graph(true));
  checkSameTraining(together, apart);
}

}  // namespace
}  // namespace muster
