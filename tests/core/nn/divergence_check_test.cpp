#include "muster/core/nn/divergence_check.h"

#include "muster/core/data/in_memory.h"
#include "tests/core/nn/test.h"

namespace muster {
namespace {

using test::thrown;

/// A network of one dense layer with one input.
std::unique_ptr<MultiLayerNetwork> smallNetwork(const Output& output, double l2 = 0) {
  auto network = std::make_unique<MultiLayerNetwork>(
      MultiLayerConfiguration{.l2 = l2, .inputShape = {1}, .layers = {output}});
  network->init();
  return network;
}

void setParameters(Model& model, std::string_view name, std::initializer_list<float> values) {
  auto& block = model.block(BlockKind::Parameters);
  for (const auto& segment : block.segments->segments)
    if (segment.name.ends_with(name))
      std::ranges::copy(values, block.values.span<float>().begin() + segment.offset);
}

}  // namespace

TEST_CASE(
    "a regression has diverged if its loss, without penalty, is far above the first and above predicting 0") {
  InMemoryDataSetIterator data(Tensor::zeros({4, 1}), Tensor::of({1, -1, 3, -3}, {4, 1}), 2);
  const auto owned =
      smallNetwork({.classes = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity},
                   /*l2=*/1);
  auto& network = *owned;
  const auto from = [&](float bias) {
    setParameters(network, "weight", {1e6f});  // a penalty of 5e11, and features are 0
    setParameters(network, "bias", {bias});    // the loss is 5 + bias^2
    return DivergenceCheck(network, data);
  };
  const auto endsWith = [&](const DivergenceCheck& check, float bias) {
    setParameters(network, "bias", {bias});
    check.requireNone(network);
  };
  const auto untrained = from(0);
  CHECK(untrained.constant() == 5);
  CHECK_NOTHROW(endsWith(untrained, 2.2f));  // 9.84
  CHECK(thrown<NonFiniteScore>([&] { endsWith(untrained, 3); }) ==
        "the training diverged: its loss went from 5 to 14, while that of a constant prediction is 5");
  CHECK_NOTHROW(endsWith(from(100), 99));  // far above a constant prediction, but it fell
  CHECK_NOTHROW(endsWith(from(100), 120));
  CHECK_THROWS_AS(endsWith(from(100), 150), NonFiniteScore);
  CHECK(thrown<NonFiniteScore>([&] { endsWith(untrained, test::kInfinity); }) ==
        "the training diverged: the network's outputs are not numbers");
}

TEST_CASE("a classifier has diverged if its loss is far above the first and above guessing") {
  InMemoryDataSetIterator data(Tensor::zeros({3, 1}), test::integers({1, 1, 1}), 2);
  const auto owned = smallNetwork({.classes = 2});
  auto& network = *owned;
  const auto setBias = [&](float bias) {
    setParameters(network, "bias", {bias, 0});
  };  // loss log(1 + e^bias)
  setBias(0);
  const DivergenceCheck check(network, data);
  setBias(1);
  CHECK_NOTHROW(check.requireNone(network));  // 1.313 of 1.386
  setBias(2);
  CHECK(thrown<NonFiniteScore>([&] { check.requireNone(network); }) ==
        "the training diverged: its loss went from 0.693 to 2.13, while that of a constant prediction is "
        "0.693");
}

TEST_CASE("the loss of a constant prediction follows from the labels") {
  const auto constantOf = [](const Output& output, const Tensor& labels) {
    const auto owned = smallNetwork(output);
    auto& network = *owned;
    InMemoryDataSetIterator data(Tensor::zeros({labels.shape()[0], 1}), labels, 2);
    return DivergenceCheck(network, data).constant();
  };
  const Output squares{.classes = 3, .loss = Loss::MeanSquaredError, .activation = Activation::Identity};
  const Output sigmoids{.classes = 3, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid};
  CHECK(constantOf({.classes = 3}, test::integers({2, 0, 1})) == doctest::Approx(std::log(3)));
  CHECK(constantOf({.classes = 3}, Tensor::of({0, 1, 0, 1, 0, 0}, {2, 3})) == doctest::Approx(std::log(3)));
  CHECK(constantOf(sigmoids, Tensor::of({0, 1, 1, 0, 0, 0}, {2, 3})) == doctest::Approx(std::log(2)));
  CHECK(constantOf(squares, Tensor::of({0, 1, 2, 3, 4, 0}, {2, 3})) == doctest::Approx(5));
}

}  // namespace muster
