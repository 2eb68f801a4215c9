#include "muster/core/nn/models/convnet.h"

#include "muster/core/nn/computation_graph.h"
#include "tests/core/nn/test.h"

using namespace muster;

namespace {

using test::sameBits;

std::string refusal(auto call) {
  return test::thrown<InvalidArgument>(call);
}

/// Why a network of these layers cannot be constructed; "" if it can.
std::string problemOf(std::vector<Layer> layers, const Shape& input = {1, 8, 8}) {
  return refusal([&] { MultiLayerNetwork({.inputShape = input, .layers = std::move(layers)}); });
}

/// A user's layer with mistakes.
struct Wrong {
  static constexpr std::string_view kType = "test-wrong";
  std::string name = {};
  std::vector<std::string> tensors = {};
  Shape outputShape(const Shape& input) const { return input; }
  std::vector<ParameterSpec> parameters(const Shape&) const {
    std::vector<ParameterSpec> specs;
    for (const auto& tensor : tensors) specs.push_back({.name = tensor, .shape = {2}});
    return specs;
  }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding&, Context&) const { return nullptr; }
  void fields(Fields& f) { f.field("name", name); }
  void validate() const {}
};

/// A user's layer with the name of a built-in layer.
struct FalseDense : Wrong {
  static constexpr std::string_view kType = Dense::kType;
};

}  // namespace

TEST_CASE("exampleFeatures() gives a batch of the network's input shape once it is known") {
  const auto check = [](Network& network, const std::vector<std::string>& expected) {
    network.init();
    const Batch batch = network.exampleFeatures();
    std::vector<std::string> features;
    for (const auto& [name, value, source] : batch.features)
      features.push_back(name + ": " + value.toString());
    CHECK(features == expected);
    CHECK(network.outputs(batch).front().shape()[0] == 1);
  };
  MultiLayerNetwork open({.layers = {Dense{.units = 2}}});
  CHECK(open.exampleFeatures().features.empty());
  MultiLayerNetwork images({.inputShape = {1, 4, 4}, .layers = {Dense{.units = 2}}});
  check(images, {"features: float32 [1, 1, 4, 4] on cpu"});
  MultiLayerNetwork large({.inputShape = {1, 10'000'000, 10'000'000}, .layers = {GlobalPool2d{}}});
  large.init();
  const std::string text = test::thrown<OutOfMemory>([&] { large.exampleFeatures(); });
  CHECK_MESSAGE(text.starts_with("network: an example takes 400000000.0 MB, but of the "), text);
  CHECK_MESSAGE(text.ends_with("the shape of its features is [1, 10000000, 10000000]"), text);
  MultiLayerNetwork words({.inputShape = {3}, .layers = {Embedding{.vocabulary = 5, .features = 2}}});
  check(words, {"features: int64 [1, 3] on cpu"});
  ComputationGraphConfiguration graph{
      .inputs = {{.name = "left", .shape = {2}}, {.name = "right", .shape = {3}}}};
  graph.addOutput(graph.add("sum", Merge{}, {"left", "right"}));
  ComputationGraph both(graph);
  check(both, {"left: float32 [1, 2] on cpu", "right: float32 [1, 3] on cpu"});
}

TEST_CASE("a layer type is registered once, and cannot replace another") {
  Layer::registerType<Wrong>();
  Layer::registerType<Wrong>();
  Layer::registerType<Dense>();
  CHECK(refusal([] { Layer::registerType<FalseDense>(); }) ==
        "layer: there is a type \"dense\" already; yours needs another name");
  const auto made = Layer::registry().make("dense");
  CHECK(dynamic_cast<const detail::ModuleOf<Dense>*>(made.get()) != nullptr);
}

TEST_CASE("a layer that compiles to nothing is refused by name") {
  MultiLayerNetwork model({.inputShape = {3}, .layers = {Wrong{.name = "mine"}, Output{.classes = 2}}});
  model.init();
  const auto batch = test::classBatch({3}, 2, 2, 1);
  CHECK(refusal([&] { model.step(batch); }) == "layer mine (test-wrong): compile() returned no program");
}

TEST_CASE("two tensors that would have one name in a file are refused when the network is constructed") {
  const auto problem = [](std::vector<Layer> layers) {
    layers.push_back(Output{.classes = 2});
    return problemOf(layers, {3});
  };
  CHECK(problem({Wrong{.name = "a", .tensors = {"v", "w"}}, Wrong{.name = "b", .tensors = {"v"}}}) == "");
  CHECK(problem({Wrong{.name = "a", .tensors = {"w", "w"}}}) ==
        "a (test-wrong) of features [3]: two tensors would be called a.w");
  CHECK(problem({Wrong{.name = "a", .tensors = {"b.w"}}, Wrong{.name = "a.b", .tensors = {"w"}}}) ==
        "a.b (test-wrong) of a [3]: two tensors would be called a.b.w");
  CHECK_CONTAINS(problem({Dense{.units = 3, .name = "updater.velocity.a"}}),
                 "its tensor updater.velocity.a.weight would be called as those of the updater");
  CHECK_CONTAINS(problem({Wrong{.name = "counters", .tensors = {"epoch"}}}), "its tensor counters.epoch");
  CHECK(problem({ActivationLayer{.name = "counters"}}) == "");
}

TEST_CASE("sizes that do not fit any memory are refused, and so are inputs without features") {
  const std::int64_t many = std::int64_t{1} << 46, more = std::int64_t{1} << 62;
  CHECK(problemOf({Dense{.units = many}}, {1000000}) ==
        "dense1 (dense) of features [1000000]: shape: [70368744177664, 1000000] is too large");
  CHECK_CONTAINS(problemOf({Dense{.units = 2}}, {more, 4}), "[4611686018427387904, 4] is too large");
  CHECK_CONTAINS(problemOf({ActivationLayer{}}, {more, 4, 1}), "is too large");
  CHECK(problemOf({Dense{.units = 2}}, {0}) ==
        "dense1 (dense): its parameters depend on a size that the input's shape leaves open; state it");
}

TEST_CASE(
    "the summary before the input's shape is known has names and types, and says that the first batch gives "
    "the rest") {
  MultiLayerConfiguration configuration = convnet();
  configuration.inputShape = {};
  const std::string text = MultiLayerNetwork(configuration).summary();
  CHECK_CONTAINS(text, "\nconv2          conv2d         ?");
  CHECK_CONTAINS(text, "\noutput         output         ?");
  CHECK(text.ends_with("\nthe first batch gives the shape of features\n"));
  CHECK(MultiLayerNetwork(convnet()).summary().ends_with("431080\n"));
}

TEST_CASE("the acceptance network has 431,080 parameters, named and shaped as PyTorch would") {
  MultiLayerNetwork model(convnet());
  model.init();
  const auto& segments = model.block(BlockKind::Parameters).segments->segments;
  std::vector<std::string> names;
  for (const auto& segment : segments) {
    names.push_back(segment.name);
    CHECK(segment.offset % 16 == 0);
    CHECK(segment.regularised == segment.name.ends_with("weight"));
  }
  CHECK(model.parameterCount() == 431080);
  CHECK(names == std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                          "dense1.weight", "dense1.bias", "output.weight", "output.bias"});
  CHECK(segments[2].shape == Shape{50, 20, 5, 5});
  CHECK(segments[4].shape == Shape{500, 800});
  CHECK_CONTAINS(model.summary(), "431080");
  CHECK_CONTAINS(model.summary(), "[50, 8, 8]");
}

TEST_CASE("initial weights come from the seed, layer by layer; biases are zero") {
  const auto weights = [](std::uint64_t seed) {
    auto configuration = convnet();
    configuration.seed = seed;
    MultiLayerNetwork model(configuration);
    model.init();
    const Tensor bias = model.block(BlockKind::Parameters).segment("dense1.bias");
    CHECK(std::ranges::all_of(bias.span<float>(), [](float v) { return v == 0; }));
    return model.block(BlockKind::Parameters).values;
  };
  CHECK(sameBits(weights(123), weights(123)));
  CHECK_FALSE(sameBits(weights(123), weights(124)));
}

TEST_CASE("the score is the mean loss plus the L2 penalty") {
  MultiLayerNetwork model({.seed = 3,
                           .updater = Sgd{.learningRate = 0},
                           .l2 = 0.5,
                           .inputShape = {4},
                           .layers = {Output{.classes = 3}}});
  model.init();
  const auto batch = test::classBatch({4}, 6, 3, 2);
  double squares = 0;
  for (const float w : model.block(BlockKind::Parameters).segment("output.weight").span<float>())
    squares += w * w;
  CHECK(model.step(batch).wait().score == doctest::Approx(model.score(batch) + 0.25 * squares).epsilon(1e-6));
}

TEST_CASE("a loss over examples adds up an example's steps, whatever the mask") {
  // Two sequences of three steps, of which the second has one: y = w x with w = 1, labels 0, losses x^2.
  const auto scoreAndStep = [](LossMean mean, double weight) {
    MultiLayerNetwork model({.updater = Sgd{.learningRate = 0.5},
                             .inputShape = {3, 1},
                             .layers = {Output{.classes = 1,
                                               .loss = Loss::MeanSquaredError,
                                               .activation = Activation::Identity,
                                               .init = Init::constant(1),
                                               .bias = false,
                                               .perStep = true,
                                               .lossMean = mean,
                                               .lossWeight = weight}}});
    model.init();
    Batch batch = test::batchOf(Tensor::of({1, 2, 3, 4, 5, 6}, {2, 3, 1}), Tensor::zeros({2, 3, 1}));
    batch.masks.push_back({"features", Tensor::of({1, 1, 1, 1, 0, 0}, {2, 3})});
    const double score = model.score(batch);
    StepTicket step = model.step(batch);
    CHECK(step.weight() == (mean == LossMean::Rows ? 4 : 2));
    return std::pair(score, static_cast<double>(model.block(BlockKind::Parameters).values.data<float>()[0]));
  };
  // 1 + 4 + 9 + 16 = 30, over 4 steps or 2 examples; the gradient is twice that.
  CHECK(scoreAndStep(LossMean::Rows, 1) == std::pair(7.5, 1 - 7.5));
  CHECK(scoreAndStep(LossMean::Examples, 1) == std::pair(15.0, 1 - 15.0));
  CHECK(scoreAndStep(LossMean::Examples, 0.25) == std::pair(3.75, 1 - 3.75));
}

TEST_CASE("output() gives probabilities that do not depend on the batch size, however many sizes there are") {
  MultiLayerNetwork model(
      {.seed = 3, .inputShape = {5}, .layers = {Dense{.units = 4}, Output{.classes = 3}}});
  model.init();
  const Tensor features = test::classBatch({5}, 30, 3, 4).features[0].value;
  const test::Array all = test::toArray(model.output(features));
  for (int n = 0; n < 30; ++n)
    CHECK(all.at(3 * n) + all.at(3 * n + 1) + all.at(3 * n + 2) == doctest::Approx(1).epsilon(1e-5));
  for (int round = 0; round < 2; ++round)  // cached programs are replaced
    for (std::int64_t size = 1; size <= 30; ++size) {
      const Tensor part = model.output(features.rows(30 - size, 30));
      CHECK(test::maxError(part.rows(0, 1),
                           {{1, 3}, {all.values.end() - 3 * size, all.values.end() - 3 * size + 3}}) < 1e-5);
    }
}

TEST_CASE("a clone is equal and independent, and the input shape may come from the first batch") {
  auto configuration = convnet();
  configuration.inputShape = {};
  MultiLayerNetwork model(configuration);
  CHECK_FALSE(model.initialized());
  CHECK_CONTAINS(refusal([&] { model.init(); }), "inputShape");
  auto batch = test::classBatch({1, 28, 28}, 8, 10, 4);
  model.prepare(batch);
  model.step(batch);
  auto copy = model.clone();
  CHECK(sameBits(copy->block(BlockKind::Parameters).values, model.block(BlockKind::Parameters).values));
  CHECK(sameBits(copy->optimizer().state()[0].values, model.optimizer().state()[0].values));
  copy->step(batch);
  CHECK_FALSE(sameBits(copy->block(BlockKind::Parameters).values, model.block(BlockKind::Parameters).values));
}

TEST_CASE("invalid options are refused by name") {
  const Output output{.classes = 2};
  CHECK_CONTAINS(problemOf({}), "no layers");
  CHECK_CONTAINS(problemOf({output, output}), "must be the last");
  CHECK_CONTAINS(problemOf({Conv2d{.outChannels = 0}, output}), "layer 0: conv2d: outChannels");
  CHECK_CONTAINS(problemOf({Conv2d{.outChannels = 2, .kernel = {9, 9}}, output}),
                 "conv1 (conv2d) of features [1, 8, 8]: conv2d: ");
  CHECK_CONTAINS(problemOf({MaxPool2d{.kernel = {9, 9}}, output}),
                 "maxpool1 (maxpool2d) of features [1, 8, 8]: ");
  CHECK(problemOf({Dense{.units = 6}, MaxPool2d{}, output}) ==
        "maxpool1 (maxpool2d) of dense1 [6]: maxpool2d: expected an input [C, H, W], got [6]");
  CHECK_CONTAINS(problemOf({Dropout{.rate = 1}, output}), "rate");
  CHECK_CONTAINS(problemOf({Output{.classes = 2, .activation = Activation::Tanh}}),
                 "nll goes with activation softmax");
  const Dense named{.units = 3, .name = "a"};
  CHECK_CONTAINS(problemOf({named, named, output}), "two layers are called a");
  CHECK(problemOf({Dense{.units = 3, .name = "gr\xF6\xDF"}, output}) ==
        "network: the name of layer 0 is not UTF-8, as names in files are");
  const auto rate = [&] { MultiLayerNetwork({.updater = Sgd{.learningRate = -1}, .layers = {output}}); };
  CHECK_CONTAINS(refusal(rate), "learning");
  CHECK_CONTAINS(refusal([&] { MultiLayerNetwork({.l2 = -1, .layers = {output}}); }), "l2");

  MultiLayerNetwork model({.inputShape = {1, 8, 8}, .layers = {output}});
  auto batch = test::classBatch({1, 8, 8}, 2, 2, 1);
  CHECK_CONTAINS(refusal([&] { model.step(batch); }), "init()");
  model.init();
  CHECK_CONTAINS(refusal([&] { model.step(test::classBatch({1, 8, 9}, 2, 2, 1)); }), "[1, 8, 8]");
  batch.labels[0].value = test::integers({0, 2});
  CHECK_CONTAINS(refusal([&] { model.step(batch); }), "2");
}
