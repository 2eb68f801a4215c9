#include "tests/core/nn/test.h"

// Layers against values from a float64 script: outputs, gradients, and the order, names and shapes of
// parameters. Normalisation is in norm_layers_test, the vertices of graphs in vertices_test.

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

#include "tests/core/nn/convolution_golden.inc"
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

const Golden& goldenOf(std::string_view name) {
  for (const auto* goldens : {&kLayerGoldens, &kConvolutionGoldens})
    for (const auto& golden : *goldens)
      if (golden.name == name) return golden;
  FAIL("no golden values for " << std::string(name));
  return kLayerGoldens.front();
}

void checkClose(const Tensor& tensor, const Shape& shape, const std::vector<double>& expected) {
  CHECK(test::maxError(tensor, test::Array(shape, expected)) < 1e-5);
}

/// Runs a layer forward and backward on `input`, offered in `layout`.
void check(std::string_view name, const Layer& layer, const Tensor& input, const Tensor& mask = {},
           Layout layout = Layout::RowMajor) {
  INFO(name, ", ", nameOf(layout));
  const Golden& golden = goldenOf(name);
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

}  // namespace

TEST_CASE("layers of images agree with values from a float64 script, in every layout") {
  checkImages("conv2d", Conv2d{.outChannels = 3, .kernel = {3, 2}});
  checkImages("conv2d, tanh", Conv2d{.outChannels = 2,
                                     .kernel = {2, 2},
                                     .stride = {2, 1},
                                     .padding = {1, 1},
                                     .activation = Activation::Tanh});
  Conv2d groups{.outChannels = 6, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}};
  groups.groups = 2;
  checkImages("conv2d, groups", groups, {2, 4, 5, 5});
  checkImages("conv2d, depthwise",
              Conv2d{.outChannels = 3, .kernel = {3, 3}, .padding = {1, 1}, .groups = 3, .bias = false},
              {2, 3, 4, 3});
  ConvTranspose2d transposed{.outChannels = 2, .kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 0}};
  transposed.outputPadding = transposed.dilation = {1, 2};
  checkImages("convtranspose2d", transposed, {2, 3, 3, 2});
  checkImages(
      "convtranspose2d, groups",
      ConvTranspose2d{.outChannels = 6, .kernel = {2, 3}, .padding = {0, 1}, .groups = 2, .bias = false},
      {1, 4, 3, 3});
  checkImages("upsample2d, nearest", Upsample2d{.scale = {2, 3}}, {1, 2, 2, 3});
  checkImages("upsample2d, bilinear", Upsample2d{.scale = {3, 2}, .mode = UpsampleMode::Bilinear},
              {1, 2, 2, 3});
  checkImages("zeropad2d", ZeroPad2d{.padding = {1, 0, 2, 3}}, {1, 2, 2, 3});
  checkImages("maxpool2d", MaxPool2d{});
  checkImages("maxpool2d, padding", MaxPool2d{.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}});
  checkImages("avgpool2d", AveragePool2d{});
  checkImages("avgpool2d, padding", AveragePool2d{.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}});
  checkImages("globalpool2d, max", GlobalPool2d{.kind = PoolKind::Max});
  checkImages("globalpool2d, average", GlobalPool2d{});
  for (const auto& [activation, word] : EnumNames<Activation>::kNames)
    checkImages("activation, " + std::string(word), ActivationLayer{.activation = activation}, {2, 3, 2, 1});
}

TEST_CASE("layers of rows and along sequences agree with values from a float64 script") {
  const Tensor rows = tensorOf({3, 5}, 0), steps = tensorOf({3, 4, 2}, 0);
  check("dense", Dense{.units = 4}, rows);
  check("dense, gelu", Dense{.units = 4, .activation = Activation::GELU, .bias = false}, rows);
  check("dense, per step", Dense{.units = 3, .activation = Activation::Sigmoid, .perStep = true}, steps);
  check("activation, softmax over time", ActivationLayer{.activation = Activation::Softmax},
        tensorOf({2, 2, 3}, 0));
  check("maxpool1d", MaxPool1d{}, steps);
  check("maxpool1d, padding", MaxPool1d{.kernel = 3, .stride = 1, .padding = 1}, steps);
  check("avgpool1d", AveragePool1d{}, steps);
  check("avgpool1d, padding", AveragePool1d{.kernel = 3, .stride = 1, .padding = 1}, steps);
  check("conv1d", Conv1d{.outChannels = 4, .kernel = 3, .stride = 2, .padding = 1}, tensorOf({2, 6, 3}, 0));
  check("conv1d, groups and dilation",
        Conv1d{.outChannels = 6, .kernel = 3, .dilation = 2, .groups = 2, .bias = false},
        tensorOf({2, 6, 4}, 0));
  check("conv1d, causal", Conv1d{.outChannels = 3, .kernel = 3, .dilation = 2, .causal = true},
        tensorOf({2, 5, 2}, 0));
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

}  // namespace muster
