#include <iterator>

#include "muster/core/nn/layers.h"
#include "muster/core/nn/step_memory.h"
#include "tests/core/nn/test.h"

using namespace muster;

namespace {

#include "tests/core/nn/batch_norm_golden.inc"
#include "tests/core/nn/layer_norm_golden.inc"

// Results are float32, a few roundings away from the golden ones.
constexpr double kTolerance = 1e-6;

test::Array golden(const Shape& shape, const std::vector<double>& values) {
  return {shape, values};
}

const Shape kExample{2, 2, 2}, kBatch{3, 2, 2, 2}, kChannels{2};

MultiLayerNetwork goldenNetwork(BatchNorm options) {
  options.momentum = 0.3;
  options.epsilon = 1e-3;
  return MultiLayerNetwork({.inputShape = kExample, .layers = {options}});
}

void setAffine(Model& model) {
  auto& parameters = model.block(BlockKind::Parameters);
  const auto set = [&](const char* name, float first, float second) {
    Tensor tensor = parameters.segment(name);
    tensor.data<float>()[0] = first;
    tensor.data<float>()[1] = second;
  };
  set("batchnorm1.gamma", 1.5f, -0.5f);
  set("batchnorm1.beta", 0.25f, 0.75f);
}

Tensor statistic(Model& model, const char* name) {
  return model.block(BlockKind::Statistics).segment(name);
}

Tensor input(const std::vector<double>& values) {
  return test::toTensor(golden(kBatch, values));
}

}  // namespace

TEST_CASE("batch normalisation's outputs, running statistics and gradients agree with reference values") {
  for (const bool relu : {false, true}) {
    CAPTURE(relu);
    auto model = goldenNetwork({.activation = relu ? Activation::ReLU : Activation::Identity});
    model.init();
    CHECK(test::maxError(statistic(model, "batchnorm1.mean"), golden(kChannels, {0, 0})) == 0);
    CHECK(test::maxError(statistic(model, "batchnorm1.variance"), golden(kChannels, {1, 1})) == 0);
    setAffine(model);
    Tensor output, gradInput;
    const auto run = [&](const std::vector<double>& x, bool training) {
      std::ranges::fill(output.defined() ? output.span<float>() : std::span<float>(), NAN);
      model.forward(input(x), output, {.training = training});
    };
    run(kFirst, true);
    CHECK(test::maxError(output, golden(kBatch, relu ? kFirstRelu : kFirstOutput)) < kTolerance);
    CHECK(test::maxError(statistic(model, "batchnorm1.mean"), golden(kChannels, kMeanAfterFirst)) <
          kTolerance);
    run(kSecond, true);
    CHECK(test::maxError(output, golden(kBatch, relu ? kSecondRelu : kSecondOutput)) < kTolerance);
    CHECK(test::maxError(statistic(model, "batchnorm1.mean"), golden(kChannels, kMeanAfterSecond)) <
          kTolerance);
    CHECK(test::maxError(statistic(model, "batchnorm1.variance"), golden(kChannels, kVarianceAfterSecond)) <
          kTolerance);
    model.backward(input(kGradOutput), &gradInput);
    auto& gradients = model.block(BlockKind::Gradients);
    CHECK(test::maxError(gradInput, golden(kBatch, relu ? kReluGradInput : kGradInput)) < kTolerance);
    CHECK(test::maxError(gradients.segment("batchnorm1.gamma"),
                         golden(kChannels, relu ? kReluGradGamma : kGradGamma)) < kTolerance);
    CHECK(test::maxError(gradients.segment("batchnorm1.beta"),
                         golden(kChannels, relu ? kReluGradBeta : kGradBeta)) < kTolerance);
    if (relu) continue;
    run(kFirst, false);  // evaluation: uses the running statistics without changing them
    CHECK(test::maxError(output, golden(kBatch, kEvaluated)) < kTolerance);
    CHECK(test::maxError(statistic(model, "batchnorm1.mean"), golden(kChannels, kMeanAfterSecond)) <
          kTolerance);
    model.backward(input(kGradOutput), &gradInput);
    CHECK(test::maxError(gradInput, golden(kBatch, kEvaluatedGradInput)) < kTolerance);
    CHECK(test::maxError(model.output(input(kFirst)), golden(kBatch, kEvaluated)) < kTolerance);
  }
}

TEST_CASE("gamma and beta get no L1, L2 or weight decay; without them there are running statistics alone") {
  const std::array input{Shape{2}};
  for (const Layer& layer : {Layer(BatchNorm{}), Layer(LayerNorm{})})
    for (const auto& spec : layer.module().parameters(input)) CHECK_FALSE(spec.regularised);
  const Layer plain = BatchNorm{.affine = false};
  CHECK(plain.module().parameters(input).empty());
  CHECK(plain.module().statistics(input)[1].name == "variance");
  CHECK(plain.module().statistics(input)[1].shape == Shape{2});
  CHECK(Layer(LayerNorm{.affine = false}).module().parameters(input).empty());
}

TEST_CASE("one value per channel is refused in training, and accepted in evaluation") {
  MultiLayerNetwork features({.inputShape = {3}, .layers = {BatchNorm{.name = "bn"}}});
  MultiLayerNetwork pixels({.inputShape = {3, 1, 1}, .layers = {BatchNorm{.name = "bn"}}});
  features.init();
  pixels.init();
  Tensor output;
  const auto refusal = [&](Model& model, const Shape& shape) {
    return test::thrown<InvalidArgument>([&] { model.forward(Tensor::zeros(shape), output); });
  };
  CHECK(refusal(features, {1, 3}) ==
        "bn: in training it needs more than one value per channel, and [1, 3] has one; another batch size "
        "leaves no single example for the last batch");
  CHECK_CONTAINS(refusal(pixels, {1, 3, 1, 1}), "and [1, 3, 1, 1] has one");
  CHECK(test::maxError(statistic(features, "bn.mean"), golden({3}, {0, 0, 0})) == 0);
  features.forward(Tensor::zeros({1, 3}), output, {.training = false});
  CHECK(output.data<float>()[0] == 0);
  CHECK_NOTHROW(features.forward(Tensor::zeros({2, 3}), output));
}

TEST_CASE("options out of range and inputs of an unexpected rank are refused") {
  const auto refusal = [](const Layer& layer, const Shape& shape = {3}) {
    return test::thrown<InvalidArgument>(
        [&] { MultiLayerNetwork({.inputShape = shape, .layers = {layer}}); });
  };
  for (const double momentum : {0.0, double{test::kNan}})
    CHECK(refusal(BatchNorm{.momentum = momentum}) ==
          fmt::format("layer 0: batchnorm: momentum must be above 0 and at most 1, got {}", momentum));
  CHECK(refusal(BatchNorm{.epsilon = 0}) == "layer 0: batchnorm: epsilon must be finite and above 0, got 0");
  CHECK(refusal(LayerNorm{.epsilon = -1}) ==
        "layer 0: layernorm: epsilon must be finite and above 0, got -1");
  CHECK_CONTAINS(refusal(BatchNorm{}, {3, 4}), "batchnorm: expected an input [C] or [C, H, W], got [3, 4]");
  CHECK_CONTAINS(refusal(LayerNorm{}, {3, 4, 5}),
                 "layernorm: expected an input [F] or [T, F], got [3, 4, 5]");
}

TEST_CASE("layer normalisation agrees with reference values, for sequences and for features") {
  for (const Shape& example : {Shape{3, 5}, Shape{5}}) {
    CAPTURE(example.toString());
    const Shape batch = example.prepend(30 / example.elements());
    MultiLayerNetwork model({.inputShape = example, .layers = {LayerNorm{.epsilon = 1e-3}}});
    model.init();
    auto& parameters = model.block(BlockKind::Parameters);
    Tensor gamma = parameters.segment("layernorm1.gamma"), beta = parameters.segment("layernorm1.beta");
    CHECK(test::maxError(gamma, golden({5}, {1, 1, 1, 1, 1})) == 0);
    copy(test::toTensor(golden({5}, kLayerGamma)), gamma);
    copy(test::toTensor(golden({5}, kLayerBeta)), beta);
    const Tensor x = test::toTensor(golden(batch, kLayerInput));
    for (const bool training : {true, false}) {
      Tensor output = test::nanTensor(batch), gradInput = test::nanTensor(batch);
      model.forward(x, output, {.training = training});
      model.backward(test::toTensor(golden(batch, kLayerGradOutput)), &gradInput);
      auto& gradients = model.block(BlockKind::Gradients);
      CHECK(test::maxError(output, golden(batch, kLayerOutput)) < kTolerance);
      CHECK(test::maxError(gradInput, golden(batch, kLayerGradInput)) < kTolerance);
      CHECK(test::maxError(gradients.segment("layernorm1.gamma"), golden({5}, kLayerGradGamma)) < kTolerance);
      CHECK(test::maxError(gradients.segment("layernorm1.beta"), golden({5}, kLayerGradBeta)) < kTolerance);
    }
  }
}

TEST_CASE("on a CPU the gradient of a normalisation's input takes no memory of its own") {
  constexpr std::int64_t kUnits = 64, kExamples = 8192;
  const auto bytes = [&](std::vector<Layer> normalisations) {
    MultiLayerConfiguration network{.inputShape = {2}, .layers = {Dense{.units = kUnits}}};
    std::ranges::move(normalisations, std::back_inserter(network.layers));
    network.layers.push_back(Output{.classes = 2});
    MultiLayerNetwork model(network);
    model.init();
    return stepBytes(model, kExamples, true, {}).value();
  };
  const std::int64_t none = bytes({}), activation = kExamples * kUnits * 4;
  CHECK(bytes({BatchNorm{}}) - none < activation * 5 / 4);
  CHECK(bytes({LayerNorm{}}) - none < activation * 5 / 4);
  // The gradient of a layer of tanh has memory of its own.
  CHECK(bytes({ActivationLayer{Activation::Tanh}}) - none > activation * 7 / 4);
}
