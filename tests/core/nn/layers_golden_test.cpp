#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/arrays.h"
#include "tests/support/batch_of.h"
#include "tests/support/test.h"

// Layers, and how a network ends, against values from a float64 script: outputs, gradients, and the order,
// names and shapes of parameters. Grouped convolutions and their relatives are in convolution_layers_test,
// normalisation in norm_layers_test.

namespace muster {
namespace {

struct GoldenParameter {
  std::string_view name;
  Shape shape;
  std::vector<double> gradient;
};

struct Golden {
  std::string_view name;
  Shape output;
  std::vector<double> y, gradX;
  std::vector<GoldenParameter> parameters;
};

struct LossGolden {
  std::string_view name;
  double score, weight;
  std::vector<double> output;
  std::vector<GoldenParameter> parameters;
};

#include "tests/core/nn/layers_golden.inc"

/// As values() in layers_golden.py.
test::Array values(const Shape& shape, std::size_t salt, double factor = 1) {
  const std::int64_t steps[] = {7, 11, 13, 17, 19, 23};
  test::Array array(shape);
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    array.at(i) =
        factor * (static_cast<double>((steps[salt] * i + 5 * static_cast<std::int64_t>(salt)) % 61) - 30.25) /
        16;
  return array;
}

Tensor tensorOf(const Shape& shape, std::size_t salt, double factor = 1) {
  return test::toTensor(values(shape, salt, factor));
}

template <typename T>
const T& find(const std::vector<T>& goldens, std::string_view name) {
  for (const auto& golden : goldens)
    if (golden.name == name) return golden;
  FAIL("no golden values for " << std::string(name));
  return goldens.front();
}

void checkClose(const Tensor& tensor, const Shape& shape, const std::vector<double>& expected) {
  CHECK(test::maxError(tensor, test::Array(shape, expected)) < 1e-5);
}

/// Runs a layer forward and backward on `input`, offered in `layout`.
void check(std::string_view name, const Layer& layer, const Tensor& input, const Tensor& mask = {},
           Layout layout = Layout::RowMajor) {
  CAPTURE(name);
  CAPTURE(nameOf(layout));
  const Golden& golden = find(kLayerGoldens, name);
  const Module& module = layer.module();
  const Shape example[] = {input.shape().dropFirst()};
  REQUIRE(module.outputShape(example).prepend(input.shape()[0]) == golden.output);

  Context context;
  const ContextScope scope(context);
  ModuleBinding binding{.name = "layer", .inputs = {{input.shape(), layout}}};
  const auto specs = module.parameters(example);
  REQUIRE(specs.size() == golden.parameters.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CHECK(specs[i].name == golden.parameters[i].name);
    REQUIRE(specs[i].shape == golden.parameters[i].shape);
    binding.parameters.push_back(tensorOf(specs[i].shape, 1 + i, 0.5));
    binding.gradients.push_back(test::nanTensor(specs[i].shape));
  }
  const auto program = module.compile(binding, context);
  const auto in = [](Layout wanted, const Tensor& rows) {
    return rows.dtype() == DType::Int64 ? cloneTensor(rows) : test::toTensor(test::toArray(rows), wanted);
  };
  const Tensor x[] = {in(program->inputLayout(), input)};
  Tensor y = test::nanTensor(golden.output, program->outputLayout());
  Tensor gradY = in(program->outputLayout(), tensorOf(golden.output, 5));
  Tensor gradX[] = {golden.gradX.empty() ? Tensor() : test::nanTensor(input.shape(), program->inputLayout())};
  const StepInfo info{.stamp = {}, .sequenceMask = mask.defined() ? &mask : nullptr};
  program->forwardAll(x, y, info);
  checkClose(y, golden.output, golden.y);
  program->backwardAll(x, y, gradY, gradX, info);
  if (gradX[0].defined()) checkClose(gradX[0], input.shape(), golden.gradX);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CAPTURE(specs[i].name);
    checkClose(binding.gradients[i], specs[i].shape, golden.parameters[i].gradient);
  }
}

void checkImages(std::string_view name, const Layer& layer, const Shape& shape = {2, 2, 4, 3}) {
  for (const auto& [layout, word] : EnumNames<Layout>::kNames)
    check(name, layer, tensorOf(shape, 0), {}, layout);
}

struct NamedMask {
  std::string suffix;
  Tensor mask;
};

/// No mask, sequences that end early (one only padding), and masks with holes.
std::vector<NamedMask> masks() {
  return {{"", {}},
          {", end", Tensor::of({1, 1, 1, 1, /**/ 1, 1, 0, 0, /**/ 0, 0, 0, 0}, {3, 4})},
          {", anywhere", Tensor::of({1, 0, 1, 1, /**/ 0, 1, 1, 0, /**/ 1, 1, 1, 1}, {3, 4})}};
}

void checkMasked(const std::string& name, const Layer& layer, const Tensor& input) {
  for (const auto& [suffix, mask] : masks()) check(name + suffix, layer, input, mask);
}

/// Checks a loss after a dense layer with tanh.
void checkLoss(std::string_view name, const Output& output, const Tensor& labels, const Tensor& mask) {
  CAPTURE(name);
  const LossGolden& golden = find(kLossGoldens, name);
  const Shape input = output.perStep ? Shape{3, 2} : Shape{4};
  MultiLayerNetwork model(
      {.inputShape = input,
       .layers = {Dense{.units = 3, .activation = Activation::Tanh, .perStep = output.perStep, .name = "d"},
                  output}});
  model.init();
  for (std::size_t i = 0; i < golden.parameters.size(); ++i) {
    const auto& [segment, shape, gradient] = golden.parameters[i];
    const Tensor parameter = model.block(BlockKind::Parameters).segment(std::string(segment));
    REQUIRE(parameter.shape() == shape);
    std::ranges::copy(tensorOf(shape, 1 + i, 0.5).span<float>(), parameter.data<float>());
  }
  Batch batch = test::batchOf(tensorOf(input.prepend(output.perStep ? 2 : 3), 0), labels);
  if (mask.defined()) batch.masks.push_back({"mask", mask});
  const Tensor& gradients = model.block(BlockKind::Gradients).values;
  std::ranges::fill(gradients.span<float>(), test::kNan);
  const auto step = model.gradient(batch).wait();
  CHECK(step.score == doctest::Approx(golden.score).epsilon(1e-6));
  CHECK(step.weight == golden.weight);
  for (const auto& [segment, shape, gradient] : golden.parameters) {
    CAPTURE(segment);
    checkClose(model.block(BlockKind::Gradients).segment(std::string(segment)), shape, gradient);
  }
  const Tensor predicted = model.output(batch.features[0].value);
  checkClose(predicted, predicted.shape(), golden.output);
}

}  // namespace

TEST_CASE("convolutions and dense layers agree with values from a float64 script") {
  checkImages("conv2d", Conv2d{.outChannels = 3, .kernel = {3, 2}});
  checkImages("conv2d, tanh", Conv2d{.outChannels = 2,
                                     .kernel = {2, 2},
                                     .stride = {2, 1},
                                     .padding = {1, 1},
                                     .activation = Activation::Tanh});
  check("dense", Dense{.units = 4}, tensorOf({3, 5}, 0));
  check("dense, gelu", Dense{.units = 4, .activation = Activation::GELU, .bias = false}, tensorOf({3, 5}, 0));
  check("dense, per step", Dense{.units = 3, .activation = Activation::Sigmoid, .perStep = true},
        tensorOf({3, 4, 2}, 0));
}

TEST_CASE("activations as layers agree with values from a float64 script") {
  for (const auto& [activation, word] : EnumNames<Activation>::kNames)
    checkImages("activation, " + std::string(word), ActivationLayer{.activation = activation}, {2, 3, 2, 1});
  check("activation, softmax over time", ActivationLayer{.activation = Activation::Softmax},
        tensorOf({2, 2, 3}, 0));
}

TEST_CASE("pooling agrees with values from a float64 script") {
  checkImages("maxpool2d", MaxPool2d{});
  checkImages("maxpool2d, padding", MaxPool2d{.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}});
  checkImages("avgpool2d", AveragePool2d{});
  checkImages("avgpool2d, padding", AveragePool2d{.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}});
  checkImages("globalpool2d, max", GlobalPool2d{.kind = PoolKind::Max});
  checkImages("globalpool2d, average", GlobalPool2d{});
}

TEST_CASE("pooling along sequences agrees with values from a float64 script, and refuses invalid sizes") {
  const Tensor x = tensorOf({3, 4, 2}, 0);
  check("maxpool1d", MaxPool1d{}, x);
  check("maxpool1d, padding", MaxPool1d{.kernel = 3, .stride = 1, .padding = 1}, x);
  check("avgpool1d", AveragePool1d{}, x);
  check("avgpool1d, padding", AveragePool1d{.kernel = 3, .stride = 1, .padding = 1}, x);

  CHECK(MaxPool1d{.kernel = 3}.outputShape({7, 2}) == Shape{2, 2});
  const auto refusal = [](const MaxPool1d& layer, const Shape& input) {
    return test::thrown<InvalidArgument>([&] {
      layer.validate();
      layer.outputShape(input);
    });
  };
  CHECK(refusal({}, {4}) == "maxpool1d: expected a sequence [T, F] of at least one step, got [4]");
  CHECK(refusal({.kernel = 5}, {4, 2}) == "maxpool1d: a kernel of 5 does not fit 4 steps with padding 0");
  CHECK(refusal({.padding = 2}, {4, 2}) ==
        "maxpool1d: padding must be between 0 and half the kernel, got 2 with kernel 2");
}

TEST_CASE("layers over time agree with values from a float64 script, with masks") {
  Tensor indices = Tensor::empty({3, 4}, DType::Int64);
  for (std::int64_t i = 0; i < 12; ++i) indices.data<std::int64_t>()[i] = (3 * i + i / 4) % 5;
  checkMasked("embedding", Embedding{.vocabulary = 5, .features = 2}, indices);
  const Tensor x = tensorOf({3, 4, 2}, 0);
  checkMasked("laststep", LastStep{}, x);
  checkMasked("meanovertime", MeanOverTime{}, x);
  checkMasked("lstm", LSTM{.units = 2}, x);
  checkMasked("lstm, last", LSTM{.units = 2, .returnSequences = false}, x);
  checkMasked("gru", GRU{.units = 2}, x);
  checkMasked("gru, last", GRU{.units = 2, .returnSequences = false}, x);
  const Tensor wide = tensorOf({3, 4, 4}, 0, 0.5);
  checkMasked("selfattention", SelfAttention{.heads = 2}, wide);
  checkMasked("selfattention, causal", SelfAttention{.heads = 2, .causal = true}, wide);
}

TEST_CASE("output layers agree with values from a float64 script: outputs, losses, gradients") {
  const Tensor classes = test::integers({2, 0, 3}, {3}),
               overTime = test::integers({1, 3, 0, 2, 2, 1}, {2, 3});
  test::Array soft = values({3, 4}, 4);
  for (std::int64_t n = 0; n < 3; ++n) {
    double sum = 0;
    for (std::int64_t c = 0; c < 4; ++c) sum += std::exp(soft.at(4 * n + c));
    for (std::int64_t c = 0; c < 4; ++c) soft.at(4 * n + c) = std::exp(soft.at(4 * n + c)) / sum;
  }
  const Tensor rows = test::toTensor(soft);
  for (const auto& [suffix, mask] :
       {NamedMask{"", {}}, NamedMask{", masked", Tensor::of({1, 0, 0.5f}, {3})}}) {
    checkLoss("nll" + suffix, {.classes = 4, .name = "o"}, classes, mask);
    checkLoss("nll of rows" + suffix, {.classes = 4, .name = "o"}, rows, mask);
    checkLoss("mse" + suffix,
              {.classes = 4, .loss = Loss::MeanSquaredError, .activation = Activation::Tanh, .name = "o"},
              rows, mask);
    checkLoss(
        "bce" + suffix,
        {.classes = 4, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid, .name = "o"},
        rows, mask);
  }
  const Output steps{.classes = 4, .perStep = true, .name = "o"};
  checkLoss("nll over time", steps, overTime, {});
  checkLoss("nll over time, masked", steps, overTime, Tensor::of({1, 1, 0, /**/ 1, 0, 0}, {2, 3}));
}

}  // namespace muster
