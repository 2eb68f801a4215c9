#include "muster/core/nn/layers/normalise.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/gradient_check.h"
#include "muster/core/nn/learning_rate_finder.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/inference/parallel_inference.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/nn/batches.h"
#include "tests/parallel/on_nodes.h"
#include "tests/support/allocations.h"
#include "tests/support/arrays.h"
#include "tests/support/batch_of.h"
#include "tests/support/list_iterator.h"
#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

// Population standard deviation of three equally spaced values: sqrt(2/3) of the distance.
const double kOuter = std::sqrt(1.5);

MultiLayerNetwork alone(const Shape& input, NormaliseMethod method = NormaliseMethod::Standardise) {
  return MultiLayerNetwork({.inputShape = input, .layers = {Normalise{.method = method}}});
}

MultiLayerNetwork classifier(const Shape& input) {
  return MultiLayerNetwork(
      {.seed = 4,
       .updater = Nesterovs{.learningRate = 0.1},
       .weightDecay = 0.01,
       .inputShape = input,
       .layers = {Normalise{}, Dense{.units = 3, .activation = Activation::Tanh}, Output{.classes = 2}}});
}

/// The layer's output for `features` after fitting it to them alone.
Tensor scaled(const Tensor& features, NormaliseMethod method = NormaliseMethod::Standardise) {
  auto model = alone(features.shape().dropFirst(), method);
  ListIterator data({batchOf(features)});
  model.fitNormalisation(data);
  return model.output(features);
}

/// Columns of four magnitudes; the third has one value only.
std::vector<Batch> table() {
  Batch all = classBatch({4}, 10, 2, 3);
  constexpr std::array<float, 4> kFactors{1e-6f, 1e5f, 0, 2}, kOffsets{0, 1e9f, 7, -40};
  for (std::int64_t i = 0; i < 40; ++i) {
    float& value = all.features[0].value.data<float>()[i];
    value = value * kFactors[static_cast<std::size_t>(i % 4)] + kOffsets[static_cast<std::size_t>(i % 4)];
  }
  std::vector<Batch> parts;
  for (const std::int64_t begin : {0, 3, 6, 8})
    parts.push_back(partOf(all, begin, begin < 6 ? begin + 3 : begin + 2));
  return parts;
}

std::vector<float> numbersOf(Model& model) {
  return floatsOf(model.block(BlockKind::Statistics).values);
}

}  // namespace

TEST_CASE("columns get mean 0 and deviation 1; a large offset keeps its small differences") {
  const Tensor x = Tensor::of({1e9f, 1, 5, 1e9f + 128, 3, 5, 1e9f + 256, 5, 5}, {3, 3});
  CHECK(maxError(scaled(x), {{3, 3}, {-kOuter, -kOuter, 0, 0, 0, 0, kOuter, kOuter, 0}}) < 1e-6);
  CHECK(maxError(scaled(x, NormaliseMethod::MinMax), {{3, 3}, {0, 0, 0, 0.5, 0.5, 0, 1, 1, 0}}) < 1e-6);
}

TEST_CASE("a column of zeros and ones is divided by 1/2, so that a rare one is no large number") {
  // [8, 3]: one 1 in eight; zeros and ones with 0.5 between, which are a number; -1 and 1.
  const Tensor x =
      Tensor::of({1, 1, 1, 0, 0.5f, 1, 0, 0, 1, 0, 0, 1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1}, {8, 3});
  const Tensor y = scaled(x);
  CHECK(y.at(0, 0) == 1.75);   // (1 - 1/8) / 0.5
  CHECK(y.at(1, 0) == -0.25);  // (0 - 1/8) / 0.5
  // Mean 3/16, mean of squares 5/32: a deviation of sqrt(5/32 - 9/256).
  CHECK(y.at(0, 1) == doctest::Approx(13.0 / 16 / std::sqrt(31.0 / 256)).epsilon(1e-6));
  CHECK(y.at(0, 2) == 1);
  CHECK(y.at(7, 2) == -1);
}

TEST_CASE("a column of one value keeps scale 1 for values that come later") {
  auto model = alone({1});
  ListIterator data({batchOf(Tensor::of({5, 5}, {2, 1}))});
  model.fitNormalisation(data);
  CHECK(model.output(Tensor::of({7.5f}, {1, 1})).data<float>()[0] == 2.5f);
}

TEST_CASE("images are scaled by channel, bytes as value/255") {
  Tensor bytes = Tensor::empty({1, 2, 1, 3}, DType::UInt8);
  constexpr std::array<std::uint8_t, 6> kPixels{0, 51, 102, 200, 210, 220};
  std::copy(kPixels.begin(), kPixels.end(), bytes.data<std::uint8_t>());
  CHECK(maxError(scaled(bytes), {{1, 2, 1, 3}, {-kOuter, 0, kOuter, -kOuter, 0, kOuter}}) < 1e-5);
  // Two images whose channels differ in mean: the variance between them counts, {0, 2, 4, 6} has sqrt(5).
  const Tensor x = Tensor::of({0, 2, 4, 6}, {2, 1, 1, 2});
  const double unit = 1 / std::sqrt(5.0);
  CHECK(maxError(scaled(x), {{2, 1, 1, 2}, {-3 * unit, -unit, unit, 3 * unit}}) < 1e-6);
}

TEST_CASE("steps of sequences are scaled by feature, and padding does not count") {
  Batch batch = batchOf(Tensor::of({1, 10, 3, 30, 900, 900, 5, 50, 900, 900, 900, 900}, {2, 3, 2}));
  batch.masks.push_back({"features", Tensor::of({1, 1, 0, 1, 0, 0}, {2, 3})});
  auto model = alone({3, 2});
  ListIterator data({batch});
  model.fitNormalisation(data);
  const Tensor y = model.output(Tensor::of({1, 10, 3, 30, 5, 50}, {1, 3, 2}));
  CHECK(maxError(y, {{1, 3, 2}, {-kOuter, -kOuter, 0, 0, kOuter, kOuter}}) < 1e-6);
}

TEST_CASE("the numbers do not depend on the size of batches, and come from epoch 0") {
  auto parts = alone({4}), whole = alone({4});
  ListIterator batches(table());
  parts.fitNormalisation(batches);
  CHECK(batches.epochs == std::vector<std::int64_t>{0});
  std::vector<Batch> joined(1);
  Tensor& all = Batch::ensure(joined[0].features, "features", {10, 4});
  std::int64_t row = 0;
  for (const auto& part : table())
    for (std::int64_t i = 0; i < part.features[0].value.elements(); ++i)
      all.data<float>()[row++] = part.features[0].value.data<float>()[i];
  ListIterator one(joined);
  whole.fitNormalisation(one);
  CHECK(numbersOf(parts) == numbersOf(whole));
}

TEST_CASE("fit takes the numbers from the training examples, and no step or merge changes them") {
  auto fitted = classifier({4}), model = classifier({4}), merged = classifier({4});
  ListIterator data(table());
  fitted.fitNormalisation(data);
  const auto numbers = numbersOf(fitted);
  model.fit(data, 2);
  CHECK(numbersOf(model) == numbers);
  for (const int workers : {1, 3}) {
    CAPTURE(workers);
    merged.init();
    auto wrapper = ParallelWrapper::Builder(merged).workers(workers).averagingFrequency(1).build();
    wrapper.fit(data, 2);
    CHECK(numbersOf(merged) == numbers);
    if (workers == 1) CHECK(stateBits(merged) == stateBits(model));
    merged.init();
    wrapper.fit(data);  // anew, with the same replicas
    CHECK(numbersOf(merged) == numbers);
  }
}

TEST_CASE("every node finds the same numbers, those of all examples") {
  auto expected = classifier({4});
  ListIterator all(table());
  expected.fitNormalisation(all);
  VirtualNetwork network(2);
  const auto problems = onNodes(network, std::chrono::seconds(30), [&](const Nodes& here) {
    auto model = classifier({4});
    ListIterator data(table());
    ParallelWrapper::Builder(model).workers(1).averagingFrequency(1).nodes(here).build().fit(data, 2);
    CHECK(numbersOf(model) == numbersOf(expected));
  });
  for (const auto& problem : problems) CHECK(problem == "");
}

TEST_CASE("an input shape that is open is taken from the first batch") {
  auto open = classifier({}), model = classifier({4});
  ListIterator data(table());
  ParallelWrapper::Builder(open).workers(2).build().fit(data);
  model.fitNormalisation(data);
  CHECK(numbersOf(open) == numbersOf(model));
}

TEST_CASE("numbers that are there stay in further trainings on other data") {
  auto model = classifier({4});
  ListIterator first(table()), other({classBatch({4}, 6, 2, 8)});
  model.fit(first);
  const auto numbers = numbersOf(model);
  model.fit(other);
  CHECK(numbersOf(model) == numbers);
  model.fitNormalisation(other);
  CHECK(numbersOf(model) != numbers);
}

TEST_CASE("a saved model scales by itself, also in ParallelInference") {
  const TemporaryDirectory directory;
  auto model = classifier({4});
  ListIterator data(table());
  model.fit(data);
  model.save(directory / "model.safetensors");
  const auto loaded = MultiLayerNetwork::load(directory / "model.safetensors");
  CHECK(loaded->normalisationFitted());
  const Tensor x = table()[0].features[0].value;
  const Array expected = toArray(model.output(x));
  CHECK(maxError(loaded->output(x), expected) == 0);
  // A joined batch may be computed in parts, whose bits differ.
  ParallelInference inference(*loaded, {.workers = 2, .mode = InferenceMode::Sequential});
  CHECK(maxError(inference.output(batchOf(x)).output, expected) == 0);
  CHECK(maxError(loaded->clone()->output(x), expected) == 0);
}

TEST_CASE("a layer that was never fitted computes nothing, and says what to call") {
  auto model = classifier({4});
  model.init();
  CHECK_FALSE(model.normalisationFitted());
  const Batch batch = table()[0];
  const std::string advice =
      "network: normalise1 has no numbers to scale by yet; fit() takes them from the training examples, or "
      "call fitNormalisation(data)";
  Tensor out;
  CHECK_REFUSED(model.output(batch.features[0].value), advice);
  CHECK_REFUSED(model.score(batch), advice);
  CHECK_REFUSED(model.gradient(batch), advice);
  CHECK_REFUSED(model.forward(batch.features[0].value, out), advice);
  ListIterator data(table());
  CHECK_REFUSED(model.evaluate(data), advice);
  model.fit(data);
  CHECK(model.normalisationFitted());
  model.init();
  CHECK_FALSE(model.normalisationFitted());
}

TEST_CASE("a value that is not finite is named, with its example and place") {
  auto batches = table();
  batches[1].features[0].value.data<float>()[1 * 4 + 3] = kNan;
  ListIterator data(batches);
  auto model = classifier({4});
  CHECK_REFUSED(
      model.fit(data),
      "normalise1: cannot be fitted: example 5 has the value nan at position 4, both counted from 1 in [4]");
  auto wrapper = ParallelWrapper::Builder(model).workers(2).build();
  CHECK_CONTAINS(thrown<TrainingError>([&] { wrapper.fit(data); }),
                 "example 5 has the value nan at position 4");
  ListIterator none({});
  CHECK_REFUSED(model.fitNormalisation(none), "fit normalisation: the data set has no batches");
}

TEST_CASE("a step allocates nothing") {
  auto model = classifier({4});
  ListIterator data(table());
  model.fit(data);
  const Batch batch = table()[0];
  model.step(batch);
  CHECK(allocationsIn([&] { model.step(batch); }) == 0);
}

TEST_CASE("gradients pass through: times the scale") {
  auto model = classifier({4});
  const Batch batch = table()[0];
  ListIterator data({batch});
  model.fitNormalisation(data);
  CHECK(checkGradients(model, batch).passed);
  auto layer = alone({2, 1, 2});
  ListIterator images({batchOf(Tensor::of({0, 8, 1, 1}, {1, 2, 1, 2}))});
  layer.fitNormalisation(images);
  Tensor out, gradInput;
  layer.forward(Tensor::of({1, 2, 3, 4}, {1, 2, 1, 2}), out);
  layer.backward(Tensor::of({1, 2, 3, 4}, {1, 2, 1, 2}), &gradInput);
  CHECK(maxError(gradInput, {{1, 2, 1, 2}, {0.25, 0.5, 3, 4}}) == 0);
}

TEST_CASE("each input of a graph has its own numbers; only inputs can be scaled") {
  ComputationGraphConfiguration graph{.inputs = {{"wide", {2}}, {"narrow", {1}}}};
  graph.add("a", Normalise{}, {"wide"});
  graph.add("b", Normalise{.method = NormaliseMethod::MinMax}, {"narrow"});
  graph.add("both", Merge{}, {"a", "b"});
  graph.addOutput("both");
  ComputationGraph model(graph);
  Batch batch;
  batch.features.push_back({"narrow", Tensor::of({2, 3, 6}, {3, 1})});
  batch.features.push_back({"wide", Tensor::of({1, 10, 2, 20, 3, 30}, {3, 2})});
  ListIterator data({batch});
  model.fitNormalisation(data);
  CHECK(maxError(model.outputs(batch)[0], {{3, 3}, {-kOuter, -kOuter, 0, 0, 0, 0.25, kOuter, kOuter, 1}}) <
        1e-6);
  CHECK_REFUSED(MultiLayerNetwork({.inputShape = {3}, .layers = {Dense{.units = 2}, Normalise{}}}),
                "network: normalise1 (normalise) scales an input of the network, but reads dense1; make it "
                "the first layer");
}

TEST_CASE("a learning-rate search fits the layer, too") {
  auto model = classifier({4});
  ListIterator data(table());
  CHECK(findLearningRate(model, data, {.steps = 10}).scores.size() > 0);
  CHECK(model.normalisationFitted());
}

TEST_CASE("the method has a name in JSON") {
  const auto json = alone({2}, NormaliseMethod::MinMax).toJson();
  CHECK_CONTAINS(json, "minmax");
  CHECK(MultiLayerConfiguration::fromJson(json).toJson() == json);
}
