#include "muster/core/nn/models/char_lstm.h"
#include "muster/core/nn/models/gpt.h"
#include "muster/core/nn/models/lenet.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/models/resnet18.h"
#include "tests/core/nn/test.h"

using namespace muster;

namespace {

std::int64_t parametersOf(Network& model) {
  model.init();
  return model.parameterCount();
}

Shape lastShape(const Network& model, const std::string& name) {
  for (const auto& [node, shape] : model.outputShapes())
    if (node == name) return shape;
  return {};
}

/// Whether all weights start at `value`; biases and normalisation scales do not.
bool allWeightsAre(Network& model, float value) {
  model.init();
  const auto& block = model.block(BlockKind::Parameters);
  return std::ranges::all_of(block.segments->segments, [&](const Segment& segment) {
    const auto weights = block.segment(segment.name).span<float>();
    return segment.shape.rank() < 2 || std::ranges::count(weights, value) == std::ssize(weights);
  });
}

/// Texts over five characters in which each character determines the next.
Batch textBatch(std::int64_t examples, std::int64_t steps) {
  Batch batch;
  Tensor& features = Batch::ensure(batch.features, "features", {examples, steps}, DType::Int64);
  Tensor& labels = Batch::ensure(batch.labels, "labels", {examples, steps}, DType::Int64);
  for (std::int64_t n = 0; n < examples; ++n)
    for (std::int64_t t = 0, c = n % 5; t < steps; ++t) {
      features.data<std::int64_t>()[n * steps + t] = c;
      c = (2 * c + 1) % 5;
      labels.data<std::int64_t>()[n * steps + t] = c;
    }
  return batch;
}

}  // namespace

TEST_CASE("the chosen initialiser is used for every weight of the ready-made models") {
  const Init init = Init::constant(0.125);
  ComputationGraph residual(resnet18(3, 2, {.imageSize = {8, 8}, .width = 2, .init = init}));
  CHECK(allWeightsAre(residual, 0.125f));
  MultiLayerNetwork five(lenet(3, 1, {.init = init}));
  CHECK(allWeightsAre(five, 0.125f));
  auto chain = mlp({4, 3}, 2, {.init = init});
  chain.inputShape = {5};
  MultiLayerNetwork perceptron(chain);
  CHECK(allWeightsAre(perceptron, 0.125f));
  auto text = charLstm(5, {.units = 3, .embedding = 4, .init = init, .embeddingInit = init});
  text.inputShape = {6};
  MultiLayerNetwork writer(text);
  CHECK(allWeightsAre(writer, 0.125f));
}

TEST_CASE(
    "the ready-made character model has its size, gradients and learning, and a file that gives the same "
    "bits") {
  auto configuration = charLstm(5, {.units = 7, .layers = 2, .embedding = 6});
  configuration.seed = 4;
  configuration.updater = Adam{.learningRate = 0.02};
  MultiLayerNetwork model(configuration);
  const Batch batch = textBatch(6, 8);
  model.prepare(batch);
  CHECK(parametersOf(model) == 5 * 6 + 4 * 7 * (6 + 7 + 1) + 4 * 7 * (7 + 7 + 1) + 5 * 7 + 5);
  CHECK(lastShape(model, "lstm2") == Shape{8, 7});
  CHECK(lastShape(model, "output") == Shape{8, 5});
  test::checkGradientsOf(model, batch);
  test::checkLearns(model, batch, 60);
  test::checkComesBack(model, batch);
}

TEST_CASE(
    "the ready-made transformer has its size, gradients and learning, and does not see what comes later") {
  auto configuration = gpt(5, {.layers = 2, .heads = 2, .features = 4});
  configuration.seed = 4;
  configuration.updater = Adam{.learningRate = 0.02};
  ComputationGraph model(configuration);
  const Batch batch = textBatch(6, 8);
  model.prepare(batch);
  // Two normalisations, attention and the dense part of a block; then the last normalisation and the output.
  const std::int64_t block = 2 * 8 + 4 * (4 * 4 + 4) + (16 * 4 + 16) + (4 * 16 + 4);
  CHECK(parametersOf(model) == 5 * 4 + 2 * block + 8 + 5 * 4 + 5);
  CHECK(lastShape(model, "output") == Shape{8, 5});
  test::checkGradientsOf(model, batch);
  test::checkLearns(model, batch, 100);

  const Tensor text = cloneTensor(batch.features.front().value);
  for (int n = 0; n < 6; ++n) text.at<std::int64_t>(n, 5) = (text.at<std::int64_t>(n, 5) + 1) % 5;
  const Tensor a = model.output(batch.features.front().value), b = model.output(text);
  const auto same = [&](int n, int from, int to) {
    const auto part = [&](const Tensor& y) { return test::floatsOf(y.rows(n, n + 1)); };
    const auto x = part(a), y = part(b);
    return std::equal(x.begin() + 5 * from, x.begin() + 5 * to, y.begin() + 5 * from);
  };
  for (int n = 0; n < 6; ++n) CHECK((same(n, 0, 5) && !same(n, 5, 8)));
}

TEST_CASE("ready-made models refuse invalid options, also a dropout rate") {
  const auto problem = [](const auto& make) {
    return test::thrown<InvalidArgument>([&] { MultiLayerNetwork model(make()); });
  };
  CHECK(problem([] { return charLstm(1); }) ==
        "charLstm: the vocabulary must have at least 2 characters, got 1");
  CHECK(problem([] { return charLstm(5, {.layers = 0}); }) == "charLstm: layers must be at least 1, got 0");
  CHECK(problem([] { return charLstm(5, {.units = 0}); }) ==
        "layer 1: lstm: units must be at least 1, got 0");
  CHECK(problem([] { return charLstm(5, {.embedding = 0}); }).starts_with("layer 0: embedding: "));
  for (const double rate : {-0.1, 1.0, double{test::kNan}}) {
    const auto refusal = fmt::format("dropout: rate must be at least 0 and below 1, got {}", rate);
    CHECK(problem([&] { return charLstm(5, {.dropout = rate}); }) == "layer 2: " + refusal);
    CHECK(problem([&] { return mlp({4}, 2, {.dropout = rate}); }) == "layer 1: " + refusal);
  }
  CHECK_REFUSED(gpt(1), "gpt: the vocabulary must have at least 2 symbols, got 1");
  CHECK_REFUSED(gpt(5, {.heads = 3, .features = 4}), "gpt: heads must divide the features, got 3 and 4");
  CHECK(charLstm(5, {.layers = 2, .dropout = 0.2}).layers.size() == 6);
  CHECK(charLstm(5, {.layers = 2}).layers.size() == 4);
}

TEST_CASE("ResNet-18 has the known number of parameters and shapes") {
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

TEST_CASE(
    "a narrow ResNet-18 has correct gradients, learns, and is loaded from its file with the same bits") {
  auto configuration = resnet18(3, 2, {.imageSize = {9, 8}, .width = 4});
  configuration.seed = 4;
  configuration.updater = Sgd{.learningRate = 0.05};
  ComputationGraph model(configuration);
  model.init();
  const Batch batch = test::classBatch({2, 9, 8}, 12, 3, 6);
  test::checkGradientsOf(model, batch, {.epsilon = 1e-3, .perSegment = 6});
  test::checkLearns(model, batch, 15);
  test::checkComesBack(model, batch);
}

TEST_CASE("LeNet and the perceptron have the known numbers of parameters") {
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
