// Networks whose input shape leaves sizes open: the length of sequences, the size of images.
#include "tests/core/nn/test.h"

using namespace muster;

namespace {

constexpr std::int64_t kClasses = 4;

MultiLayerConfiguration recurrent(std::int64_t steps) {
  return {.seed = 7,
          .updater = Adam{},
          .inputShape = {steps, 3},
          .layers = {Normalise{}, Conv1d{.outChannels = 5, .kernel = 2}, LSTM{.units = 3},
                     Output{.classes = kClasses, .perStep = true}}};
}

/// Sequences with a label at each step of what the convolution leaves.
Batch sequences(std::int64_t steps, std::uint64_t seed) {
  Batch batch = test::sequenceBatch({steps, 3}, 5, kClasses, seed, false);
  batch.labels = test::sequenceBatch({steps - 1, 3}, 5, kClasses, seed, false).labels;
  return batch;
}

using test::floatsOf;

std::vector<float> parametersOf(Network& model) {
  return floatsOf(model.block(BlockKind::Parameters).values);
}

}  // namespace

TEST_CASE("a network of any length computes the bits of one with the batch's length") {
  MultiLayerNetwork any(recurrent(0));
  any.init();
  // The same numbers to scale by; the data have sequences of several lengths.
  test::ListIterator all({sequences(6, 1), sequences(9, 2)});
  any.fitNormalisation(all);
  for (const std::int64_t steps : {6, 2, 64, 9}) {
    CAPTURE(steps);
    MultiLayerNetwork fixed(recurrent(steps));
    fixed.init();
    fixed.copyStateFrom(any);
    const Batch batch = sequences(steps, 3);
    test::ListIterator once({batch}), again({batch});
    any.fit(once);
    fixed.fit(again);
    CHECK(parametersOf(any) == parametersOf(fixed));
    const Tensor& features = batch.features[0].value;
    CHECK(any.output(features).shape() == Shape{5, steps - 1, kClasses});
    CHECK(floatsOf(any.output(features)) == floatsOf(fixed.output(features)));
  }
  CHECK_REFUSED(any.output(Tensor::zeros({2, 4, 5})),
                "network: expected features [0, 3], where 0 is any size, with at least one example before "
                "it, got float32 [2, 4, 5] on cpu");
  CHECK_CONTAINS(any.summary(), "shapes for a size of 64 where the input's shape leaves it open\n");
}

TEST_CASE("a layer that refuses an open input says which size of the message stands for any") {
  const MultiLayerConfiguration normalised{.inputShape = {0, 2},
                                           .layers = {BatchNorm{}, LastStep{}, Output{.classes = 2}}};
  CHECK_REFUSED(
      MultiLayerNetwork(normalised).init(),
      "batchnorm1 (batchnorm) of features [64, 2]: batchnorm: expected an input [C] or [C, H, W], got "
      "[64, 2]; the shape of features is [0, 2], and 64 stands for a size that it leaves open");
}

TEST_CASE("an open length is kept in files") {
  test::TemporaryDirectory directory;
  MultiLayerNetwork words({.inputShape = {0},
                           .layers = {Embedding{.vocabulary = 9, .features = 3},
                                      LSTM{.units = 3, .returnSequences = false}, Output{.classes = 2}}});
  words.init();
  words.save(directory / "words.safetensors");
  const auto read = MultiLayerNetwork::load(directory / "words.safetensors");
  CHECK(read->configuration().inputShape == Shape{0});
  for (const std::int64_t length : {1, 7}) {
    const Tensor indices = Tensor::zeros({2, length}, DType::Int64);
    CHECK(floatsOf(read->output(indices)) == floatsOf(words.output(indices)));
  }
}

TEST_CASE("images of any size give the bits of a network with the batch's size") {
  const auto network = [](const Shape& input) {
    auto model = std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration{
        .seed = 3,
        .inputShape = input,
        .layers = {Conv2d{.outChannels = 4, .kernel = 3, .padding = 1}, BatchNorm{}, MaxPool2d{.kernel = 2},
                   Conv2d{.outChannels = 8, .kernel = 3}, GlobalPool2d{}, Output{.classes = kClasses}}});
    model->init();
    return model;
  };
  const auto any = network({2, 0, 0}), high = network({2, 0, 12});
  for (const auto& [height, width] : {std::pair(9, 12), std::pair(64, 12), std::pair(20, 8)}) {
    const auto fixed = network({2, height, width});
    fixed->copyStateFrom(*any);
    const Batch batch = test::classBatch({2, height, width}, 6, kClasses, 5);
    test::ListIterator once({batch}), again({batch});
    any->fit(once);
    fixed->fit(again);
    CHECK(parametersOf(*any) == parametersOf(*fixed));
    CHECK(test::thrown<InvalidArgument>([&] { high->output(batch.features[0].value); }).empty() ==
          (width == 12));
  }
}
