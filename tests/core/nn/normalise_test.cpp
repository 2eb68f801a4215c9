#include "muster/core/nn/layers/normalise.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/learning_rate_finder.h"
#include "muster/parallel/inference/parallel_inference.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/nn/test.h"
#include "tests/parallel/on_nodes.h"
#include "tests/support/allocations.h"

// How numbers follow from the examples is tested on values, by input_moments_test.

using namespace muster;
using namespace muster::test;

namespace {

// Population standard deviation of three equally spaced values: sqrt(2/3) of the distance.
const double kOuter = std::sqrt(1.5);

MultiLayerNetwork alone(const Shape& input) {
  return MultiLayerNetwork({.inputShape = input, .layers = {Normalise{}}});
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
Tensor scaled(const Tensor& features) {
  auto model = alone(features.shape().dropFirst());
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

TEST_CASE("images are scaled by channel, bytes as value/255") {
  Tensor bytes = Tensor::empty({1, 2, 1, 3}, DType::UInt8);
  constexpr std::array<std::uint8_t, 6> kPixels{0, 51, 102, 200, 210, 220};
  std::copy(kPixels.begin(), kPixels.end(), bytes.data<std::uint8_t>());
  CHECK(maxError(scaled(bytes), {{1, 2, 1, 3}, {-kOuter, 0, kOuter, -kOuter, 0, kOuter}}) < 1e-5);
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

TEST_CASE("fit takes the numbers from the training examples, and no step or merge changes them") {
  auto fitted = classifier({4}), model = classifier({4}), merged = classifier({4});
  ListIterator data(table());
  fitted.fitNormalisation(data);
  CHECK(data.epochs == std::vector<std::int64_t>{0});
  const auto numbers = numbersOf(fitted);
  model.fit(data, 2);
  CHECK(numbersOf(model) == numbers);
  const Batch batch = table()[0];
  fitted.step(batch);
  CHECK(allocationsIn([&] { fitted.step(batch); }) == 0);
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
  CHECK_REFUSED(model.evaluate(data), "evaluate: batch 1: " + advice);
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
      "normalise1: cannot be fitted: example 4 has the value nan at position 3, both counted from 0 in [4]");
  auto wrapper = ParallelWrapper::Builder(model).workers(2).build();
  CHECK_CONTAINS(thrown<TrainingError>([&] { wrapper.fit(data); }),
                 "example 4 has the value nan at position 3");
  ListIterator none({});
  CHECK_REFUSED(model.fitNormalisation(none), "fit normalisation: the data set has no batches");
}

TEST_CASE("gradients pass through: times the scale") {
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
