#include "muster/core/nn/models/convnet.h"

#include "muster/core/nn/computation_graph.h"
#include "tests/core/nn/batches.h"
#include "tests/support/arrays.h"
#include "tests/support/batch_of.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

using test::sameBits;

std::string messageOf(auto call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no InvalidArgument";
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
  const auto check = [](Network& network,
                        const std::vector<std::tuple<std::string, Shape, DType>>& expected) {
    network.init();
    const Batch batch = network.exampleFeatures();
    REQUIRE(batch.features.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto& [name, shape, dtype] = expected[i];
      CHECK(batch.features[i].name == name);
      CHECK(batch.features[i].value.shape() == shape);
      CHECK((batch.features[i].value.dtype() == dtype));
    }
    CHECK(network.outputs(batch).front().shape()[0] == 1);
  };
  MultiLayerNetwork open({.layers = {Dense{.units = 2}}});
  CHECK(open.exampleFeatures().features.empty());
  MultiLayerNetwork images({.inputShape = {1, 4, 4}, .layers = {Dense{.units = 2}}});
  check(images, {{"features", {1, 1, 4, 4}, DType::Float32}});
  MultiLayerNetwork large({.inputShape = {1, 10'000'000, 10'000'000}, .layers = {GlobalPool2d{}}});
  large.init();
  const std::string text = test::thrown<OutOfMemory>([&] { large.exampleFeatures(); });
  CHECK_MESSAGE(text.starts_with("network: an example takes 400000000.0 MB, but of the "), text);
  CHECK_MESSAGE(text.ends_with("the shape of its features is [1, 10000000, 10000000]"), text);
  MultiLayerNetwork words({.inputShape = {3}, .layers = {Embedding{.vocabulary = 5, .features = 2}}});
  check(words, {{"features", {1, 3}, DType::Int64}});
  ComputationGraphConfiguration graph{
      .inputs = {{.name = "left", .shape = {2}}, {.name = "right", .shape = {3}}}};
  graph.addOutput(graph.add("sum", Merge{}, {"left", "right"}));
  ComputationGraph both(graph);
  check(both, {{"left", {1, 2}, DType::Float32}, {"right", {1, 3}, DType::Float32}});
}

TEST_CASE("a layer type is registered once, and cannot replace another") {
  Layer::registerType<Wrong>();
  Layer::registerType<Wrong>();
  Layer::registerType<Dense>();
  CHECK(messageOf([] { Layer::registerType<FalseDense>(); }) ==
        "layer: there is a type \"dense\" already; yours needs another name");
  const auto made = Layer::registry().make("dense");
  CHECK(dynamic_cast<const detail::ModuleOf<Dense>*>(made.get()) != nullptr);
}

TEST_CASE("a layer that compiles to nothing is refused by name") {
  MultiLayerNetwork model({.inputShape = {3}, .layers = {Wrong{.name = "mine"}, Output{.classes = 2}}});
  model.init();
  const auto batch = test::classBatch({3}, 2, 2, 1);
  CHECK(messageOf([&] { model.step(batch); }) == "layer mine (test-wrong): compile() returned no program");
}

TEST_CASE("names of layers must be text on one line") {
  const auto problem = [](const std::string& name) {
    return messageOf([&] { MultiLayerNetwork({.layers = {Dense{.units = 2, .name = name}}}); });
  };
  CHECK(problem("größe 1") == "no InvalidArgument");
  CHECK(problem("gr\xF6\xDF") == "network: the name of layer 0 is not UTF-8, as names in files are");
  for (const char* name : {"two\nlines", "a\tb", "\x7F", "\u009B2J"})
    CHECK(problem(name) ==
          "network: the name of layer 0 holds a control character, as a newline; names are written to tables "
          "and files");
}

TEST_CASE("two tensors that would have one name in a file are refused when the network is constructed") {
  const auto problem = [](std::vector<Layer> layers) {
    layers.push_back(Output{.classes = 2});
    return messageOf([&] { MultiLayerNetwork({.inputShape = {3}, .layers = layers}); });
  };
  CHECK(problem({Wrong{.name = "a", .tensors = {"v", "w"}}, Wrong{.name = "b", .tensors = {"v"}}}) ==
        "no InvalidArgument");
  CHECK(problem({Wrong{.name = "a", .tensors = {"w", "w"}}}) ==
        "a (test-wrong) of features [3]: two tensors would be called a.w");
  CHECK(problem({Wrong{.name = "a", .tensors = {"b.w"}}, Wrong{.name = "a.b", .tensors = {"w"}}}) ==
        "a.b (test-wrong) of a [3]: two tensors would be called a.b.w");
  CHECK_CONTAINS(problem({Dense{.units = 3, .name = "updater.velocity.a"}}),
                 "its tensor updater.velocity.a.weight would be called as those of the updater");
  CHECK_CONTAINS(problem({Wrong{.name = "counters", .tensors = {"epoch"}}}), "its tensor counters.epoch");
  CHECK(problem({ActivationLayer{.name = "counters"}}) == "no InvalidArgument");
}

TEST_CASE("sizes that do not fit any memory are refused, and so are inputs without features") {
  const auto problem = [](Shape input, std::vector<Layer> layers) {
    return messageOf([&] { MultiLayerNetwork({.inputShape = input, .layers = layers}); });
  };
  const std::int64_t many = std::int64_t{1} << 46, more = std::int64_t{1} << 62;
  CHECK(problem({1000000}, {Dense{.units = many}}) ==
        "dense1 (dense) of features [1000000]: shape: [70368744177664, 1000000] is too large");
  CHECK_CONTAINS(problem({more, 4}, {Dense{.units = 2}}), "[4611686018427387904, 4] is too large");
  CHECK_CONTAINS(problem({more, 4, 1}, {ActivationLayer{}}), "is too large");
  CHECK(problem({0}, {Dense{.units = 2}}) ==
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

TEST_CASE("initial weights come from the seed, layer by layer") {
  MultiLayerNetwork a(convnet()), b(convnet());
  a.init();
  b.init();
  const auto weights = [](MultiLayerNetwork& m) { return m.block(BlockKind::Parameters).values; };
  CHECK(sameBits(weights(a), weights(b)));
  auto other = convnet();
  other.seed = 124;
  MultiLayerNetwork c(other);
  c.init();
  CHECK_FALSE(sameBits(weights(a), weights(c)));

  // Xavier: standard deviation sqrt(2 / (20*25 + 50*25)) for conv2; biases zero; padding zero.
  const Tensor conv2 = a.block(BlockKind::Parameters).segment("conv2.weight");
  double squares = 0;
  for (std::int64_t i = 0; i < conv2.elements(); ++i) squares += std::pow(conv2.data<float>()[i], 2);
  CHECK(std::sqrt(squares / static_cast<double>(conv2.elements())) ==
        doctest::Approx(std::sqrt(2.0 / (20 * 25 + 50 * 25))).epsilon(0.02));
  const Tensor bias = a.block(BlockKind::Parameters).segment("dense1.bias");
  CHECK(std::ranges::all_of(bias.span<float>(), [](float v) { return v == 0; }));
}

TEST_CASE("a step lowers the loss, and the same steps give the same bits") {
  const auto train = [](MultiLayerNetwork& model) {
    model.init();
    auto batch = test::classBatch({1, 28, 28}, 32, 10, 9);
    double first = 0, last = 0;
    for (int i = 0; i < 12; ++i) {
      batch.stamp.iteration = i;
      last = model.step(batch).wait().score;
      if (i == 0) first = last;
    }
    return std::pair(first, last);
  };
  MultiLayerNetwork a(convnet()), b(convnet());
  const auto [first, last] = train(a);
  CHECK(last < 0.8 * first);
  train(b);
  CHECK(sameBits(a.block(BlockKind::Parameters).values, b.block(BlockKind::Parameters).values));
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

TEST_CASE("output() gives probabilities that do not depend on the batch size") {
  MultiLayerNetwork model(convnet());
  model.init();
  const auto batch = test::classBatch({1, 28, 28}, 40, 10, 4);
  const Tensor all = model.output(batch.features[0].value);
  CHECK(all.shape() == Shape{40, 10});
  for (int n = 0; n < 40; ++n) {
    double sum = 0;
    for (int c = 0; c < 10; ++c) sum += all.data<float>()[n * 10 + c];
    CHECK(sum == doctest::Approx(1).epsilon(1e-5));
  }
  const Tensor few = model.output(batch.features[0].value.rows(10, 13));
  for (int i = 0; i < 30; ++i)
    CHECK(few.data<float>()[i] == doctest::Approx(all.data<float>()[100 + i]).epsilon(1e-4));
}

TEST_CASE("results do not change if many batch sizes replace the cached programs") {
  MultiLayerNetwork model(
      {.seed = 3, .inputShape = {5}, .layers = {Dense{.units = 4}, Output{.classes = 3}}});
  model.init();
  const auto batch = test::classBatch({5}, 30, 3, 4);
  const Tensor all = model.output(batch.features[0].value);
  for (int round = 0; round < 2; ++round)
    for (std::int64_t size = 1; size <= 30; ++size) {
      const Tensor part = model.output(batch.features[0].value.rows(0, size));
      CHECK(part.data<float>()[0] == doctest::Approx(all.data<float>()[0]).epsilon(1e-5));
    }
}

TEST_CASE("byte features are read as value/255") {
  MultiLayerNetwork model({.seed = 3, .inputShape = {3}, .layers = {Output{.classes = 2}}});
  model.init();
  Tensor bytes = Tensor::empty({1, 3}, DType::UInt8);
  bytes.data<std::uint8_t>()[0] = 0;
  bytes.data<std::uint8_t>()[1] = 51;
  bytes.data<std::uint8_t>()[2] = 255;
  const Tensor a = model.output(bytes), b = model.output(Tensor::of({0, 0.2f, 1}, {1, 3}));
  CHECK(a.data<float>()[0] == doctest::Approx(b.data<float>()[0]).epsilon(1e-6));
}

TEST_CASE("a clone is equal and independent, and the input shape may come from the first batch") {
  auto configuration = convnet();
  configuration.inputShape = {};
  MultiLayerNetwork model(configuration);
  CHECK_FALSE(model.initialized());
  CHECK_CONTAINS(messageOf([&] { model.init(); }), "inputShape");
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
  const auto network = [](std::vector<Layer> layers, Shape input = {1, 8, 8}) {
    return messageOf([&] { MultiLayerNetwork({.inputShape = input, .layers = layers}); });
  };
  CHECK_CONTAINS(network({}), "no layers");
  CHECK_CONTAINS(network({Output{.classes = 2}, Output{.classes = 2}}), "must be the last");
  CHECK_CONTAINS(network({Conv2d{.outChannels = 0}, Output{.classes = 2}}), "layer 0: conv2d: outChannels");
  CHECK_CONTAINS(network({Conv2d{.outChannels = 2, .kernel = {9, 9}}, Output{.classes = 2}}),
                 "conv1 (conv2d) of features [1, 8, 8]: conv2d: ");
  CHECK_CONTAINS(network({MaxPool2d{.kernel = {9, 9}}, Output{.classes = 2}}),
                 "maxpool1 (maxpool2d) of features [1, 8, 8]: ");
  CHECK(network({Dense{.units = 6}, MaxPool2d{}, Output{.classes = 2}}) ==
        "maxpool1 (maxpool2d) of dense1 [6]: maxpool2d: expected an input [C, H, W], got [6]");
  CHECK_CONTAINS(network({Dropout{.rate = 1}, Output{.classes = 2}}), "rate");
  CHECK_CONTAINS(network({Output{.classes = 2, .activation = Activation::Tanh}}),
                 "nll goes with activation softmax");
  CHECK_CONTAINS(
      network({Dense{.units = 3, .name = "a"}, Dense{.units = 3, .name = "a"}, Output{.classes = 2}}),
      "two layers are called a");
  CHECK_CONTAINS(messageOf([] {
                   MultiLayerNetwork({.updater = Sgd{.learningRate = -1}, .layers = {Output{.classes = 2}}});
                 }),
                 "learning");
  CHECK_CONTAINS(messageOf([] { MultiLayerNetwork({.l2 = -1, .layers = {Output{.classes = 2}}}); }), "l2");

  MultiLayerNetwork model({.inputShape = {1, 8, 8}, .layers = {Output{.classes = 2}}});
  const auto batch = test::classBatch({1, 8, 8}, 2, 2, 1);
  CHECK_CONTAINS(messageOf([&] { model.step(batch); }), "init()");
  model.init();
  CHECK_CONTAINS(messageOf([&] { model.step(test::classBatch({1, 8, 9}, 2, 2, 1)); }), "[1, 8, 8]");
  auto badLabel = batch;
  badLabel.labels[0].value = Tensor::empty({2}, DType::Int64);
  badLabel.labels[0].value.data<std::int64_t>()[0] = 0;
  badLabel.labels[0].value.data<std::int64_t>()[1] = 2;
  CHECK_CONTAINS(messageOf([&] { model.step(badLabel); }), "2");

  MultiLayerNetwork open({.layers = {Output{.classes = 2}}});
  auto row = batch;
  row.features[0].value = Tensor::zeros({5});
  CHECK(
      messageOf([&] { open.prepare(row); }) ==
      "network: the first batch gives the shape of features, and has to be [N, ...], got float32 [5] on cpu");
  row.features[0].value = Tensor::zeros({0, 5});
  CHECK(messageOf([&] { open.prepare(row); }) ==
        "network: the first batch has no examples to take the shape of features from, it is float32 [0, 5] "
        "on cpu");
}
