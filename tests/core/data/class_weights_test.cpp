#include "muster/core/data/class_weights.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/arrays.h"
#include "tests/support/batch_of.h"
#include "tests/support/list_iterator.h"
#include "tests/support/rounding.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

using Floats = std::vector<float>;

Batch labelled(const Tensor& labels) {
  return batchOf(Tensor::zeros({labels.shape()[0], 1}), labels);
}

/// The mask of the first batch that ClassWeights gives.
Floats maskOf(Batch batch, Floats weights) {
  ListIterator list({std::move(batch)});
  ClassWeights data(list, std::move(weights));
  Batch read;
  data.reset(0);
  const bool any = nextBatch(data, read);
  REQUIRE(any);
  std::erase_if(read.masks, [](const auto& mask) { return mask.name == "features"; });
  REQUIRE(read.masks.size() == 1);
  return floatsOf(read.masks[0].value);
}

TEST_CASE("each example has the weight of its class, whatever the form of its label") {
  CHECK(maskOf(labelled(integers({2, 0, 1}, {3})), {1, 2, 4}) == Floats{4, 1, 2});
  CHECK(maskOf(labelled(Tensor::of({0, 1, 0.5f, 0.5f}, {2, 2})), {1, 3}) == Floats{3, 2});
  Batch masked = labelled(integers({1, 0}, {2}));
  masked.masks.push_back({"own", Tensor::of({0.5f, 0}, {2})});
  CHECK(maskOf(masked, {1, 3}) == Floats{1.5f, 0});
  Batch steps = labelled(integers({1, 0, 1, 1}, {2, 2}));
  steps.masks.push_back({"features", Tensor::of({1, 1, 1, 0}, {2, 2})});
  CHECK(maskOf(steps, {2, 3}) == Floats{3, 2, 3, 0});
  Batch unlabelled = labelled(integers({1, -1, 2, 0}, {2, 2}));  // no class where the weight is 0
  unlabelled.masks.push_back({"own", Tensor::of({2, 0, 0, 1}, {2, 2})});
  CHECK(maskOf(unlabelled, {2, 3}) == Floats{6, 0, 0, 2});
}

TEST_CASE("class weights work with row numbers, and recycled batches keep one mask") {
  InMemoryDataSetIterator rows(Tensor::zeros({4, 1}), integers({0, 1, 1, 0}, {4}), 3, std::nullopt,
                               MemoryPlacement::Device);
  ClassWeights data(rows, {1, 5});
  Batch batch;
  for (int epoch = 0; epoch < 2; ++epoch) {
    data.reset(epoch);
    for (const Floats& weights : {Floats{1, 5, 5}, Floats{1}}) {
      REQUIRE(nextBatch(data, batch));
      REQUIRE(batch.masks.size() == 1);
      CHECK(floatsOf(batch.masks[0].value) == weights);
    }
    CHECK_FALSE(nextBatch(data, batch));
  }
  CHECK(textOf(data.examples().value(), data.batchSize().value()) == "4 3");
  data.reset(0);
  CHECK(data.skip(1) == 3);
}

TEST_CASE("the loss is the weighted mean of the examples' losses") {
  MultiLayerNetwork network({.seed = 3, .inputShape = {2}, .layers = {Output{.classes = 3}}});
  network.init();
  const std::vector<std::int64_t> labels{0, 2, 1, 2};
  const Floats weights{1, 3, 0.5f};
  const Tensor features = Tensor::of({1, 2, -1, 0.5f, 0.25f, -2, 3, 1}, {4, 2});
  const auto score = [&](const Batch& batch) { return static_cast<Model&>(network).score(batch); };
  double sum = 0, weight = 0, largest = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t label = labels[static_cast<std::size_t>(i)];
    const double loss = score(batchOf(features.rows(i, i + 1), integers({label}, {1})));
    sum += weights[static_cast<std::size_t>(label)] * loss;
    weight += weights[static_cast<std::size_t>(label)];
    largest = std::max(largest, loss);
  }
  ListIterator list({batchOf(features, integers(labels, {4}))});
  ClassWeights data(list, weights);
  data.reset(0);
  Batch weighted;
  REQUIRE(nextBatch(data, weighted));
  // Both sum losses of float32 logits in float64; a row's loss may be rounded differently in a batch.
  CHECK(std::abs(score(weighted) - sum / weight) <= roundings(8, largest));
}

TEST_CASE("workers are weighted by their sums of class weights: W equal one on the joined batch's bits") {
  // All numbers are small multiples of a power of 2, and each batch has weight 4, so there is no rounding.
  const Tensor features = Tensor::of({1, 2, -1, 0, 1, -2, 0, 1, 2, 2, -2, 1}, {6, 2});
  const Tensor labels = Tensor::of({1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0}, {6, 2});
  const auto train = [&](int workers, std::int64_t batch) {
    MultiLayerNetwork network({.updater = Sgd{.learningRate = 0.5},
                               .inputShape = {2},
                               .layers = {Output{.classes = 2, .loss = Loss::MeanSquaredError}}});
    network.init();
    setZero(network.block(BlockKind::Parameters).values, network.context());
    InMemoryDataSetIterator rows(features, labels, batch);
    ClassWeights data(rows, {1, 2});
    fitWith(network, workers, data, 2);
    return stateBits(network);
  };
  CHECK(train(2, 3) == train(1, 6));
}

TEST_CASE("invalid class weights and labels are refused by name") {
  const auto refused = [&](const Floats& weights, const std::string& why, Tensor labels = integers({0})) {
    CHECK_REFUSED(maskOf(labelled(labels), weights), "class weights: " + why);
  };
  refused({1}, "at least two classes have weights, got 1");
  refused({1, -1}, "the weight of class 1 must be finite and not negative, got -1");
  refused({kInfinity, 1}, "the weight of class 0 must be finite and not negative, got inf");
  refused({0, 0}, "all are 0");
  refused({1, 2}, "there are weights for classes 0 to 1, and a label is 2", integers({0, 2}));
  refused({1, 2}, "labels must be int64 classes, or float32 over 2 classes, got float32 [2, 3] on cpu",
          Tensor::zeros({2, 3}));
}

}  // namespace
}  // namespace muster::test
