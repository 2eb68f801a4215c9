#include <numeric>

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/own_output.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/nn/test.h"

using namespace muster;
using namespace muster::test;

namespace {

/// The pinball loss, whose best prediction is a quantile. Source: Koenker and Bassett 1978.
struct Quantile {
  static constexpr std::string_view kType = "test-quantile";
  double quantile = 0.5;

  double ofRow(std::span<const float> predictions, std::span<const float> labels,
               std::span<float> gradient) const {
    double sum = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const double over = predictions[i] - labels[i], slope = over > 0 ? 1 - quantile : -quantile;
      sum += slope * over;
      if (!gradient.empty()) gradient[i] = static_cast<float>(slope);
    }
    return sum;
  }
  void fields(Fields& f) { f.field("quantile", quantile); }
  void validate() const { require(quantile > 0 && quantile < 1, "quantile: {} is not in (0, 1)", quantile); }
};

MultiLayerNetwork network(const Layer& output) {
  return MultiLayerNetwork({.seed = 2,
                            .updater = Sgd{.learningRate = 0.05},
                            .inputShape = {3},
                            .layers = {Dense{.units = 5, .activation = Activation::Tanh}, output}});
}

std::string refusal(const Layer& output) {
  return thrown<InvalidArgument>([&] { network(output); });
}

/// A network whose output is its first bias: its input is 0.
double scoreOf(const Output& output, float bias, const Tensor& labels) {
  auto model = MultiLayerNetwork({.inputShape = {1}, .layers = {output}});
  model.init();
  model.block(BlockKind::Parameters).segment("output.bias").data<float>()[0] = bias;
  return model.score(batchOf(Tensor::zeros({labels.shape()[0], 1}), labels));
}

}  // namespace

TEST_CASE("the activation follows the loss unless it is given") {
  const auto activationOf = [](const Output& output) { return output.lossHead().activation; };
  CHECK(activationOf({.classes = 3}) == Activation::Softmax);
  CHECK(activationOf({.units = 3, .loss = Loss::BinaryCrossEntropy}) == Activation::Sigmoid);
  for (const Loss loss : {Loss::MeanSquaredError, Loss::MeanAbsoluteError, Loss::Huber})
    CHECK(activationOf({.units = 3, .loss = loss}) == Activation::Identity);
  CHECK(activationOf({.units = 3, .loss = Loss::Huber, .activation = Activation::ReLU}) == Activation::ReLU);
}

TEST_CASE("a softmax over one value is refused wherever it is one") {
  const std::string advice =
      "layer 1: output: a softmax over one output is always 1; for two classes give classes = 2, or units = "
      "1 with the loss bce; for a number give units = 1 with the loss mse";
  CHECK(refusal(Output{.classes = 1}) == advice);
  CHECK(refusal(Output{.units = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Softmax}) ==
        advice);
  CHECK(refusal(Dense{.units = 1, .activation = Activation::Softmax}) ==
        "layer 1: dense: a softmax over one unit is always 1");
  CHECK_CONTAINS(thrown<InvalidArgument>([] {
                   MultiLayerNetwork({.inputShape = {1, 4, 4},
                                      .layers = {ActivationLayer{.activation = Activation::Softmax}}});
                 }),
                 "a softmax over one value is always 1, and the input is [1, 4, 4]");
}

TEST_CASE("classes and units are one number") {
  CHECK(refusal(Output{.classes = 2, .units = 2}) ==
        "layer 1: output: classes (2) and units (2) are two words for one number; give one");
  CHECK_CONTAINS(refusal(Output{}),
                 "must be at least 1, got 0; it is called classes in a classification, otherwise units");
  const auto parsed = [](const std::string& output) {
    return MultiLayerConfiguration::fromJson(
        R"({"format": "muster.MultiLayerConfiguration", "version": 1, "inputShape": [3], "layers": [)" +
        output + "]}");
  };
  const auto read = [&](const std::string& output) { return parsed(output).toJson(); };
  const auto regression = read(R"({"type": "output", "units": 2, "loss": "huber", "delta": 0.5})");
  CHECK_CONTAINS(regression, "\"units\": 2");
  CHECK_LACKS(regression, "classes");
  CHECK_CONTAINS(regression, "\"activation\": \"identity\"");
  CHECK_CONTAINS(regression, "\"delta\": 0.5");
  const auto classification = read(R"({"type": "output", "classes": 4, "labelSmoothing": 0.1})");
  CHECK_LACKS(classification, "units");
  CHECK(MultiLayerConfiguration::fromJson(classification).toJson() == classification);
  CHECK(parsed(R"({"type": "output", "classes": 4, "units": 0})").toJson() ==
        read(R"({"type": "output", "classes": 4})"));
  CHECK_REFUSED(MultiLayerNetwork(parsed(R"({"type": "output", "classes": 4, "units": 4})")),
                "layer 0: output: classes (4) and units (4) are two words for one number; give one");
}

TEST_CASE("scores are those worked out by hand") {
  const Tensor labels = Tensor::of({0, 4}, {2, 1});  // distances 1 and 3 of a prediction of 1
  CHECK(scoreOf({.units = 1, .loss = Loss::MeanSquaredError}, 1, labels) == doctest::Approx(5));
  CHECK(scoreOf({.units = 1, .loss = Loss::MeanAbsoluteError}, 1, labels) == doctest::Approx(2));
  CHECK(scoreOf({.units = 1, .loss = Loss::Huber, .delta = 2}, 1, labels) == doctest::Approx((0.5 + 4) / 2));
  const auto logit = static_cast<float>(std::log(3.0));  // softmax(ln 3, 0) = 3/4, 1/4
  for (const Tensor& classes : {integers({0, 1}), Tensor::of({1, 0, 0, 1}, {2, 2})})
    CHECK(scoreOf({.classes = 2}, logit, classes) ==
          doctest::Approx((std::log(4.0 / 3) + std::log(4.0)) / 2).epsilon(1e-6));
  const Tensor squares = Tensor::of({0, 0}, {1, 2});  // tanh(1) and tanh(0)
  CHECK(scoreOf({.units = 2, .loss = Loss::MeanSquaredError, .activation = Activation::Tanh}, 1, squares) ==
        doctest::Approx(std::tanh(1.0) * std::tanh(1.0) / 2).epsilon(1e-6));
}

TEST_CASE("one sigmoid output learns two classes from class indices as from numbers") {
  const Output output{.units = 1, .loss = Loss::BinaryCrossEntropy};
  // sigmoid(0) = 1/2
  CHECK(scoreOf(output, 0, integers({1, 0})) == doctest::Approx(std::log(2.0)).epsilon(1e-6));
  CHECK_REFUSED(scoreOf(output, 0, integers({1, 2})), "loss: the label of row 1 is 2, expected 0 to 1");
  const auto labels = [](const char* takes, const char* are, const char* advice) {
    return fmt::format(
        "network: output output takes {}, but its labels, called labels, are {} on cpu; the loss {}", takes,
        are, advice);
  };
  const Output binary{.units = 2, .loss = Loss::BinaryCrossEntropy},
      squares{.units = 2, .loss = Loss::MeanSquaredError}, classes{.classes = 2};
  CHECK_REFUSED(
      scoreOf(binary, 0, integers({1, 0})),
      labels("float32 [2, 2]", "int64 [2]", "bce is for a label of each output, and that of classes is nll"));
  CHECK_REFUSED(scoreOf(squares, 0, integers({1, 0})),
                labels("float32 [2, 2]", "int64 [2]", "mse is for numbers, and that of classes is nll"));
  for (const Shape& shape : {Shape{2, 1}, Shape{2}})
    CHECK_REFUSED(scoreOf(classes, 0, Tensor::of({1, 0}, shape)),
                  labels("classes int64 [2] or float32 [2, 2]", ("float32 " + shape.toString()).c_str(),
                         "nll is for classes, and those of numbers are mse, mae and huber"));
  // Numbers of the right shape: only their type is wrong.
  CHECK_REFUSED(
      scoreOf({.units = 1, .loss = Loss::MeanSquaredError}, 0, integers({1, 0}, {2, 1})),
      "network: output output takes float32 [2, 1], but its labels, called labels, are int64 [2, 1] on cpu");
  CHECK_REFUSED(
      scoreOf({.units = 1, .loss = Loss::MeanSquaredError}, 0, Tensor::of({1, 0}, {2})),
      "network: output output takes float32 [2, 1], but its labels, called labels, are float32 [2] on "
      "cpu; a number for each example is [2, 1]");

  const Batch indices = classBatch({3}, 20, 2, 5);
  Tensor numbers = Tensor::empty({20, 1});
  std::ranges::copy(indices.labels[0].value.span<std::int64_t>(), numbers.data<float>());
  InMemoryDataSetIterator byIndex(indices.features[0].value, indices.labels[0].value, 4),
      byNumber(indices.features[0].value, numbers, 4);
  auto model = network(output), same = network(output);
  model.fit(byIndex, 3);
  same.fit(byNumber, 3);
  CHECK(stateBits(model) == stateBits(same));
  CHECK(model.evaluate(byIndex).loss() == doctest::Approx(model.score(indices)).epsilon(1e-6));
}

TEST_CASE(
    "float labels that are no probabilities are refused, by training and score, except in rows of weight 0") {
  const Output binary{.units = 2, .loss = Loss::BinaryCrossEntropy}, classes{.classes = 3};
  const auto refused = [](const Output& output, const std::vector<float>& labels, const Shape& mask = {}) {
    const std::int64_t width = output.units + output.classes, rows = std::ssize(labels) / width;
    Batch batch = batchOf(Tensor::zeros({rows, 3}), Tensor::of(labels, {rows, width}));
    if (!mask.empty()) {
      Tensor weights = Tensor::zeros({rows});
      weights.data<float>()[0] = 1;
      batch.masks.push_back({"labels", weights});
    }
    auto model = network(output);
    model.init();
    ListIterator data({batch});
    const auto text = thrown<InvalidArgument>([&] { model.score(batch); });
    CHECK_CONTAINS(thrown<InvalidArgument>([&] { model.fit(data); }), text);
    return text;
  };
  CHECK(refused(binary, {0, 1, 255, 0}) == "loss: the label of row 1, column 0, is 255, expected 0 to 1");
  CHECK(refused({.units = 1, .loss = Loss::BinaryCrossEntropy}, {0, -1}) ==
        "loss: the label of row 1 is -1, expected 0 to 1");
  CHECK(refused(classes, {0, 1, 0, -1, 2, 0}) ==
        "loss: the label of row 1, column 0, is -1, expected a share of the class, 0 to 1");
  CHECK(refused(classes, {0, 1, 0, 1, 0, 1}) ==
        "loss: the labels of row 1, its shares of the classes, sum to 2, expected 1; where several classes "
        "apply at once, take sigmoid outputs with BinaryCrossEntropy");
  CHECK(refused(classes, {0, 0, 0}) ==
        "loss: the labels of row 0, its shares of the classes, sum to 0, expected 1; a row that has no class "
        "takes weight 0 in the mask");
  CHECK(refused(classes, {0.5f, 0.2f, 0.2f}) ==
        "loss: the labels of row 0, its shares of the classes, sum to 0.9, expected 1");
  CHECK(refused(classes, {0, 1, 0, 1, 0, 1}, {2}) == "");
  CHECK(refused(binary, {0, 1, 255, 0}, {2}) == "");
  CHECK(refused(classes, {0.3334f, 0.3333f, 0.3334f}) == "");
  CHECK(refused(binary, {0.25f, 1}) == "");
}

TEST_CASE("the gradients of all losses agree with central differences, of labels of all kinds, with a mask") {
  const Batch targets = targetBatch({3}, 6, 2, 5), classes = classBatch({3}, 6, 4, 5);
  Batch masked = classes;
  masked.masks.push_back({"mask", Tensor::of({1, 0, 0.5f, 1, 0, 2}, {6})});
  Batch shares = targetBatch({3}, 6, 4, 5);
  for (std::int64_t n = 0; n < 6; ++n) {
    const auto row = shares.labels[0].value.span<float>().subspan(static_cast<std::size_t>(n) * 4, 4);
    const float sum = std::accumulate(row.begin(), row.end(), 0.0f);
    for (float& share : row) share /= sum;
  }
  const auto check = [](const Output& output, const Batch& batch) {
    CAPTURE(nameOf(output.loss));
    auto model = network(output);
    model.init();
    checkGradientsOf(model, batch);
  };
  for (const Loss loss :
       {Loss::MeanSquaredError, Loss::MeanAbsoluteError, Loss::Huber, Loss::BinaryCrossEntropy})
    check({.units = 2, .loss = loss, .delta = 0.3}, targets);
  for (const auto activation : {Activation::Tanh, Activation::GELU, Activation::Softmax})
    check({.units = 2, .loss = Loss::MeanSquaredError, .activation = activation}, targets);
  check({.classes = 4, .labelSmoothing = 0.2}, classes);
  for (const Batch& batch : {classes, masked, shares}) check({.classes = 4}, batch);
}

TEST_CASE("options of a loss out of range, or of another loss, are refused") {
  CHECK(refusal(Output{.units = 1, .loss = Loss::Huber, .delta = 0}) ==
        "layer 1: output: delta must be finite and above 0, got 0");
  CHECK(refusal(Output{.classes = 2, .labelSmoothing = 1}) ==
        "layer 1: output: labelSmoothing must be in [0, 1), got 1");
  CHECK(refusal(Output{.units = 2, .loss = Loss::Huber, .labelSmoothing = 0.1}) ==
        "layer 1: output: labelSmoothing goes with the loss nll, got huber");
}

TEST_CASE("a loss of one's own is trained, checked, saved, and merged bit for bit") {
  Layer::registerType<OutputOf<Quantile>>();
  const Layer output = OutputOf<Quantile>{.units = 2, .loss = {.quantile = 0.75}};
  auto model = network(output);
  model.init();
  const Batch batch = targetBatch({3}, 8, 2, 5);
  checkGradientsOf(model, batch);
  auto wrapped = network(output);
  wrapped.init();
  ListIterator data({batch, targetBatch({3}, 5, 2, 6)});
  model.fit(data, 3);
  ParallelWrapper::Builder(wrapped).workers(1).build().fit(data, 3);
  CHECK(stateBits(model) == stateBits(wrapped));
  checkComesBack(model, batch);
  CHECK_CONTAINS(refusal(OutputOf<Quantile>{.units = 2, .loss = {.quantile = 1}}), "1 is not in (0, 1)");
}
