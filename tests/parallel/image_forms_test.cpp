// Images as floats, as bytes, and as rows of a data set on the workers' device.

#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "tests/support/devices.h"
#include "tests/support/toy_wrapper.h"

namespace muster {
namespace {

using test::OnCpu;
using test::OnGpu;

struct Form {
  DType features = DType::Float32;
  MemoryPlacement placement = MemoryPlacement::Host;
};

constexpr Form kFloats{}, kBytes{.features = DType::UInt8}, kRows{.placement = MemoryPlacement::Device};

struct Trained {
  std::vector<float> parameters;
  double score = 0, accuracy = 0;
  bool operator==(const Trained&) const = default;
};

/// Trains two workers for three epochs, each with a smaller last batch, then tests.
Trained train(Device device, const Form& form) {
  ImageSetIterator train(GeneratedDigitsIterator(1, 150, 20, true).set(), 16, 7);
  ImageSetIterator test(GeneratedDigitsIterator(1, 60, 20, false).set(), 25);
  for (auto* images : {&train, &test}) {
    images->setFeatures(form.features);
    images->setPlacement(form.placement);
  }
  MultiLayerNetwork network(
      {.seed = 3,
       .updater = Nesterovs{.learningRate = 0.02, .momentum = 0.9},
       .inputShape = {1, 28, 28},
       .layers = {Conv2d{.outChannels = 6, .kernel = {5, 5}}, MaxPool2d{.kernel = {2, 2}}, BatchNorm{},
                  Dense{.units = 24, .activation = Activation::ReLU}, Output{.classes = 10}}});
  network.init();
  auto wrapper = test::toyWrapper(network, 2, 3).devices({device}).build();
  wrapper.fit(train, 3);
  const auto parameters = network.block(BlockKind::Parameters).values.span<float>();
  return {.parameters = {parameters.begin(), parameters.end()},
          .score = network.score(),
          .accuracy = wrapper.evaluate(test).accuracy()};
}

TEST_CASE_ON("images as floats, bytes and row numbers train to the same bits", Where, OnCpu, OnGpu) {
  const auto floats = train(Where::device(), kFloats);
  REQUIRE(floats.parameters.size() > 1000);
  CHECK(std::isfinite(floats.score));
  CHECK(floats.accuracy > 0.15);  // better than guessing
  CHECK(train(Where::device(), kBytes) == floats);
  CHECK(train(Where::device(), kRows) == floats);
}

}  // namespace
}  // namespace muster
