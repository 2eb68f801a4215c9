#include <doctest/doctest.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/nn/gradient_check.h"
#include "muster/core/nn/models/lenet.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/models/resnet18.h"
#include "tests/core/nn/batches.h"
#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;

namespace {

std::int64_t parametersOf(Network& model) {
  model.init();
  std::int64_t count = 0;
  for (const auto& segment : model.block(BlockKind::Parameters).segments->segments)
    count += segment.shape.elements();
  return count;
}

Shape lastShape(const Network& model, const std::string& name) {
  for (const auto& [node, shape] : model.outputShapes())
    if (node == name) return shape;
  return {};
}

}  // namespace

TEST_CASE("ResNet-18 has the parameters and shapes that are known for it") {
  ComputationGraph colour(resnet18(10, 3, {.imageSize = {32, 32}}));
  CHECK(parametersOf(colour) == 11'173'962);  // published for CIFAR-10
  ComputationGraph grey(resnet18(10, 1));
  CHECK(parametersOf(grey) == 11'173'962 - 2 * 64 * 9);
  CHECK(lastShape(grey, "stage1.block2.sum") == Shape{64, 28, 28});
  CHECK(lastShape(grey, "stage2.block1.shortcut.norm") == Shape{128, 14, 14});
  CHECK(lastShape(grey, "stage4.block2.sum") == Shape{512, 4, 4});
  CHECK(test::thrown<InvalidArgument>([] {
          resnet18(0);
        }).starts_with("resnet18: expected at least one class"));
}

TEST_CASE("a narrow ResNet-18: gradients, learning, and a file that gives the same bits") {
  auto configuration = resnet18(3, 2, {.imageSize = {9, 8}, .width = 4});
  configuration.seed = 4;
  configuration.updater = Sgd{.learningRate = 0.05};
  ComputationGraph model(configuration);
  model.init();
  const Batch batch = test::classBatch({2, 9, 8}, 12, 3, 6);
  const auto result = checkGradients(model, batch, {.epsilon = 1e-3, .perSegment = 6});
  CHECK_MESSAGE(result.passed, result.toString());
  const double before = model.step(batch).wait().score;
  double after = before;
  for (std::int64_t i = 1; i < 15; ++i) {
    Batch next = batch;
    next.stamp.iteration = i;
    after = model.step(next).wait().score;
  }
  CHECK(after < 0.5 * before);

  test::TemporaryDirectory directory;
  model.save(directory / "resnet.safetensors");
  const auto loaded = ComputationGraph::load(directory / "resnet.safetensors");
  CHECK(test::stateBits(*loaded) == test::stateBits(model));
  const Tensor a = model.output(batch.features.front().value),
               b = loaded->output(batch.features.front().value);
  CHECK(std::ranges::equal(a.span<float>(), b.span<float>()));
}

TEST_CASE("LeNet and a perceptron") {
  MultiLayerNetwork five(lenet(10));
  CHECK(parametersOf(five) == 61'706);
  CHECK(parametersOf(*std::make_unique<MultiLayerNetwork>(lenet(10, 3, {.imageSize = {32, 32}}))) ==
        61'706 + 2 * 6 * 25 + 120 * 16 * (36 - 25));
  auto configuration =
      mlp({30, 20}, 4, {.activation = Activation::Tanh, .init = Init::normal(0.01), .dropout = 0.2});
  configuration.inputShape = {5};
  MultiLayerNetwork perceptron(configuration);
  CHECK(parametersOf(perceptron) == 5 * 30 + 30 + 30 * 20 + 20 + 20 * 4 + 4);
  CHECK(perceptron.outputShapes().size() == 5);
}
