#include "muster/core/data/data_loader.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/data/non_finite_value.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/nn/test.h"

// What a training refuses before its first step, and names at a step that fails.

using namespace muster;
using namespace muster::test;

namespace {

InMemoryDataSetIterator dataOf(std::int64_t examples, std::int64_t batch, const Shape& shape = {3}) {
  const Batch all = classBatch(shape, examples, 2, 4);
  return InMemoryDataSetIterator(all.features[0].value, all.labels[0].value, batch);
}

MultiLayerNetwork normalised(const Shape& input, BatchNorm norm = {}) {
  return MultiLayerNetwork({.seed = 3, .inputShape = input, .layers = {norm, Output{.classes = 2}}});
}

std::string failureOf(Model& model, DataSetIterator& data) {
  return thrown<InvalidArgument>([&] { model.fit(data); });
}

}  // namespace

TEST_CASE("BatchNorm and a last batch of one example are refused before the first step") {
  auto data = dataOf(9, 4);
  for (const Shape& input : {Shape{3}, Shape{}}) {
    auto model = normalised(input);
    CHECK(failureOf(model, data) ==
          "network: batchnorm1 (batchnorm) normalises over the examples of a batch, and the last batch has "
          "one: 9 examples in batches of 4; give another batch size, or leave that batch out (dropLast)");
    CHECK(model.iteration() == 0);
    auto wrapper = ParallelWrapper::Builder(model).workers(2).build();
    CHECK_CONTAINS(thrown<TrainingError>([&] { wrapper.fit(data); }), "9 examples in batches of 4");
    CHECK(model.iteration() == 0);
  }
  auto model = normalised({3});
  data.setDropLast(true);
  model.fit(data);
  CHECK(model.iteration() == 2);
}

TEST_CASE("a last batch of one example is refused also if steps accumulate batches") {
  auto data = dataOf(5, 4);  // joined in one step, but normalised as 4 and 1
  MultiLayerNetwork model(
      {.accumulate = 2, .inputShape = {3}, .layers = {BatchNorm{}, Output{.classes = 2}}});
  CHECK_CONTAINS(failureOf(model, data), "5 examples in batches of 4");
}

TEST_CASE("where a single example is enough it is trained") {
  auto images = dataOf(5, 4, {2, 3, 3});
  auto pixels = normalised({2, 3, 3});
  CHECK(failureOf(pixels, images).empty());  // nine values per channel
  auto data = dataOf(5, 4), even = dataOf(6, 4);
  auto plain = normalised({3});
  CHECK(failureOf(plain, even).empty());
  MultiLayerNetwork frozen(
      {.inputShape = {3}, .layers = {Layer(BatchNorm{}).frozen(), Output{.classes = 2}}});
  CHECK(failureOf(frozen, data).empty());
}

TEST_CASE("iterators leave out a last batch that is not full, another one in each epoch") {
  const Batch all = classBatch({3}, 11, 2, 4);
  InMemoryDataSetIterator data(all.features[0].value, all.labels[0].value, 4, /*shuffleSeed=*/5);
  data.setDropLast(true);
  CHECK(data.examples() == 8);
  CHECK(data.batchesPerEpoch() == 2);
  CHECK(data.numbered() != nullptr);
  Batch batch;
  std::vector<float> last[2];
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    data.reset(epoch);
    int batches = 0;
    for (; data.next(batch); ++batches) CHECK(batch.examples() == 4);
    CHECK(batches == 2);
    last[epoch] = floatsOf(batch.features[0].value);
    data.reset(epoch);
    CHECK(data.skip(5) == 8);
  }
  CHECK(last[0] != last[1]);
  data.setDropLast(false);
  CHECK(data.examples() == 11);
}

TEST_CASE("a value that is not finite is named by example and place, in training by batch and epoch, too") {
  Batch all = targetBatch({3}, 8, 2, 4), images = classBatch({2, 3, 4}, 5, 2, 4),
        labels = targetBatch({3}, 2, 2, 4);
  labels.labels[0].value.at(1, 0) = kInfinity;
  CHECK(nonFiniteValue(labels) ==
        "the labels hold inf: example 1 of the batch (example 1 of the epoch), column 0, counted from 0");
  images.features[0].value.at(2, 1, 1, 1) = kNan;
  CHECK(nonFiniteValue(images) ==
        "the features hold nan: example 2 of the batch (example 2 of the epoch), position [1, 1, 1], counted "
        "from 0");
  const auto train = [&](auto call) {
    MultiLayerNetwork model(
        {.inputShape = {3}, .layers = {Output{.units = 2, .loss = Loss::MeanSquaredError}}});
    InMemoryDataSetIterator data(all.features[0].value, all.labels[0].value, 4);
    call(model, data);
  };
  const auto failure = [&] {
    return thrown<NonFiniteScore>(
        [&] { train([](Model& model, DataSetIterator& data) { model.fit(data); }); });
  };
  all.features[0].value.at(5, 2) = kNan;
  const std::string place =
      "the features hold nan: example 1 of the batch (example 5 of the epoch), column 2, counted from 0";
  CHECK(failure() == "batch 2 of epoch 1: " + place);
  for (const auto mode : {TrainingMode::Averaging, TrainingMode::SynchronousGradients})
    train([&](Model& model, DataSetIterator& data) {
      auto wrapper = ParallelWrapper::Builder(model).workers(2).trainingMode(mode).build();
      CHECK_CONTAINS(thrown<TrainingError>([&] { wrapper.fit(data); }), place);
    });
  for (float& value : all.features[0].value.span<float>()) value = 3e38f;
  CHECK_CONTAINS(failure(), "lower learning rate");  // the score is not finite by itself
}

TEST_CASE("padding of sequences is not blamed for a value that is not finite elsewhere") {
  Batch batch = sequenceBatch({3, 2}, 2, 2, 4, /*masked=*/true);  // the first example is all padding
  float* const features = batch.features[0].value.data<float>();
  batch.labels.clear();
  Tensor labels = Batch::ensure(batch.labels, "labels", {2, 3, 1});
  std::ranges::fill(labels.span<float>(), 0.5f);
  labels.data<float>()[1] = kNan;
  CHECK(nonFiniteValue(batch) == std::nullopt);
  features[3] = kNan;
  CHECK(nonFiniteValue(batch) ==  // nothing else can be it
        "the features hold nan: example 0 of the batch (example 0 of the epoch), position [1, 1], counted "
        "from 0");
  labels.data<float>()[5] = kNan;
  CHECK(nonFiniteValue(batch) ==
        "the labels hold nan: example 1 of the batch (example 1 of the epoch), position [2, 0], counted from "
        "0");
  Tensor weights = Batch::ensure(batch.masks, "labels", {2, 3});  // read instead of the features' mask
  std::ranges::copy(std::array{0.0f, 0.5f, 0.0f, 1.0f, 1.0f, 0.0f}, weights.data<float>());
  CHECK(nonFiniteValue(batch)->starts_with("the labels hold nan: example 0 of the batch"));
  features[8] = kNan;
  CHECK(nonFiniteValue(batch)->ends_with("(example 1 of the epoch), position [1, 0], counted from 0"));
}
