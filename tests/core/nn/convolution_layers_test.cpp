#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/nn/batches.h"
#include "tests/core/nn/checks.h"
#include "tests/support/arrays.h"
#include "tests/support/test.h"

// Layers like convolutions: values, shapes, parameters, errors. gradient_test checks their gradients in a
// network.

namespace muster {
namespace {

struct Golden {
  std::string_view name;
  Shape output;
  std::vector<double> y, gradX, gradWeight, gradBias;
};

#include "tests/core/nn/convolution_golden.inc"

/// The values of convolution_golden.py.
Tensor values(const Shape& shape, std::int64_t a, std::int64_t b, std::int64_t m) {
  Tensor tensor = Tensor::empty(shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>((a * i + b) % m - m / 2) / 4;
  return tensor;
}

/// Runs a layer forward and backward on the golden script's inputs, offered in `layout`.
template <LayerOptions T>
void check(std::string_view name, const T& layer, const Shape& input, Layout layout) {
  CAPTURE(name);
  CAPTURE(nameOf(layout));
  const Golden* golden = nullptr;
  for (const auto& candidate : kConvolutionGoldens)
    if (candidate.name == name) golden = &candidate;
  REQUIRE(golden != nullptr);

  Context context;
  const ContextScope scope(context);
  ModuleBinding binding{.name = "layer", .inputs = {{input, layout}}};
  const Layer made(layer);
  const Shape example = input.dropFirst();
  for (const auto& spec : made.module().parameters({&example, 1})) {
    binding.parameters.push_back(spec.name == "weight" ? values(spec.shape, 5, 1, 13)
                                                       : values(spec.shape, 3, 2, 7));
    binding.gradients.push_back(test::nanTensor(spec.shape));
  }
  REQUIRE(layer.outputShape(example).prepend(input[0]) == golden->output);
  auto program = layer.compile(binding, context);
  const auto in = [](Layout wanted, const Tensor& rows) {
    return test::toTensor(test::toArray(rows), wanted);
  };
  const Tensor x = in(program->inputLayout(), values(input, 7, 3, 11));
  Tensor y = test::nanTensor(golden->output, program->outputLayout());
  Tensor gradY = in(program->outputLayout(), values(golden->output, 9, 4, 17));
  Tensor gradX = test::nanTensor(input, program->inputLayout());
  program->forward(x, y, {});
  program->backward(x, y, gradY, gradX, {});
  CHECK(test::maxError(y, test::Array(golden->output, golden->y)) < 1e-5);
  CHECK(test::maxError(gradX, test::Array(input, golden->gradX)) < 1e-5);
  if (binding.gradients.empty()) return;
  CHECK(test::maxError(binding.gradients[0], test::Array(binding.gradients[0].shape(), golden->gradWeight)) <
        1e-5);
  if (binding.gradients.size() == 1) return;
  CHECK(test::maxError(binding.gradients[1], test::Array(binding.gradients[1].shape(), golden->gradBias)) <
        1e-5);
}

template <LayerOptions T>
void checkInAllLayouts(std::string_view name, const T& layer, const Shape& input) {
  for (const auto& [layout, word] : EnumNames<Layout>::kNames) check(name, layer, input, layout);
}

}  // namespace

TEST_CASE("convolutions and related layers agree with reference values") {
  checkInAllLayouts("conv2d, groups",
                    Conv2d{.outChannels = 6,
                           .kernel = {3, 2},
                           .stride = {2, 1},
                           .padding = {1, 0},
                           .dilation = {1, 2},
                           .groups = 2},
                    {2, 4, 5, 5});
  checkInAllLayouts("conv2d, depthwise",
                    Conv2d{.outChannels = 3, .kernel = {3, 3}, .padding = {1, 1}, .groups = 3, .bias = false},
                    {2, 3, 4, 3});
  checkInAllLayouts("convtranspose2d",
                    ConvTranspose2d{.outChannels = 2,
                                    .kernel = {3, 2},
                                    .stride = {2, 3},
                                    .padding = {1, 0},
                                    .outputPadding = {1, 2},
                                    .dilation = {1, 2}},
                    {2, 3, 3, 2});
  checkInAllLayouts(
      "convtranspose2d, groups",
      ConvTranspose2d{.outChannels = 6, .kernel = {2, 3}, .padding = {0, 1}, .groups = 2, .bias = false},
      {1, 4, 3, 3});
  check("conv1d", Conv1d{.outChannels = 4, .kernel = 3, .stride = 2, .padding = 1}, {2, 6, 3},
        Layout::RowMajor);
  check("conv1d, groups and dilation",
        Conv1d{.outChannels = 6, .kernel = 3, .dilation = 2, .groups = 2, .bias = false}, {2, 6, 4},
        Layout::RowMajor);
  check("conv1d, causal", Conv1d{.outChannels = 3, .kernel = 3, .dilation = 2, .causal = true}, {2, 5, 2},
        Layout::RowMajor);
  checkInAllLayouts("upsample2d, nearest", Upsample2d{.scale = {2, 3}}, {1, 2, 2, 3});
  checkInAllLayouts("upsample2d, bilinear", Upsample2d{.scale = {3, 2}, .mode = UpsampleMode::Bilinear},
                    {1, 2, 2, 3});
  checkInAllLayouts("zeropad2d", ZeroPad2d{.padding = {1, 0, 2, 3}}, {1, 2, 2, 3});
}

TEST_CASE(
    "a grouped convolution's weights cover one group of the input, and their initial values follow from "
    "that") {
  const Conv2d layer{.outChannels = 12, .kernel = {3, 5}, .groups = 4};
  const auto specs = layer.parameters({8, 9, 9});
  REQUIRE(specs.size() == 2);
  CHECK(specs[0].shape == Shape{12, 2, 3, 5});
  CHECK(specs[0].fanIn == 2 * 3 * 5);
  CHECK(specs[0].fanOut == 3 * 3 * 5);
  CHECK(specs[1].shape == Shape{12});
  CHECK(layer.outputShape({8, 9, 9}) == Shape{12, 7, 5});

  const auto transposed =
      ConvTranspose2d{.outChannels = 12, .kernel = {3, 5}, .groups = 4}.parameters({8, 9, 9});
  REQUIRE(transposed.size() == 2);
  CHECK(transposed[0].shape == Shape{8, 3, 3, 5});
  CHECK(transposed[0].fanIn == 2 * 3 * 5);
  CHECK(transposed[0].fanOut == 3 * 3 * 5);
  CHECK(transposed[1].shape == Shape{12});

  const auto along = Conv1d{.outChannels = 12, .kernel = 5, .groups = 4}.parameters({9, 8});
  REQUIRE(along.size() == 2);
  CHECK(along[0].shape == Shape{12, 2, 5});
  CHECK(along[0].fanIn == 2 * 5);
  CHECK(along[0].fanOut == 3 * 5);
  CHECK(along[1].shape == Shape{12});
}

TEST_CASE("a causal convolution does not depend on later steps") {
  Context context;
  const ContextScope scope(context);
  const Conv1d layer{.outChannels = 2, .kernel = 4, .causal = true};
  const ModuleBinding binding{.name = "layer",
                              .inputs = {{{1, 6, 3}}},
                              .training = false,
                              .parameters = {values({2, 3, 4}, 5, 1, 13), values({2}, 3, 2, 7)}};
  auto program = layer.compile(binding, context);
  Tensor x = values({1, 6, 3}, 7, 3, 11), y = test::nanTensor({1, 6, 2}),
         changed = test::nanTensor({1, 6, 2});
  program->forward(x, y, {});
  for (int i = 9; i < 18; ++i) x.data<float>()[i] += 1;  // steps from the fourth on
  program->forward(x, changed, {});
  for (int i = 0; i < 6; ++i) CHECK(y.data<float>()[i] == changed.data<float>()[i]);
  CHECK(y.data<float>()[6] != changed.data<float>()[6]);
}

TEST_CASE("inputs that do not fit are refused, and the error names the expected shape") {
  CHECK_REFUSED((Conv2d{.outChannels = 12, .groups = 4}.outputShape({6, 9, 9})),
                "conv2d: 4 groups do not divide 6 input and 12 output channels");
  CHECK_REFUSED((ConvTranspose2d{.outChannels = 12, .groups = 4}.outputShape({6, 9, 9})),
                "conv_transpose2d: 4 groups do not divide 6 input and 12 output channels");
  CHECK_REFUSED((ConvTranspose2d{.outChannels = 12}.outputShape({6, 9})),
                "convtranspose2d: expected an input [C, H, W], got [6, 9]");
  CHECK_REFUSED((Conv1d{.outChannels = 12, .groups = 4}.outputShape({9, 6})),
                "conv1d: 4 groups do not divide 6 features and 12 output channels");
  CHECK_REFUSED((Conv1d{.outChannels = 12, .kernel = 5, .dilation = 2}.outputShape({8, 6})),
                "conv1d: a kernel of 5 with dilation 2 does not fit 8 steps with padding 0");
  CHECK_REFUSED((Conv1d{.outChannels = 12}.outputShape({8, 6, 6})),
                "conv1d: expected a sequence [T, F] of at least one step, got [8, 6, 6]");
  CHECK_THROWS_AS((Conv1d{.outChannels = 12}.outputShape({0, 6})), InvalidArgument);
  CHECK_REFUSED(Upsample2d{}.outputShape({8, 6}), "upsample2d: expected an input [C, H, W], got [8, 6]");
  CHECK_REFUSED(ZeroPad2d{}.outputShape({8, 6}), "zeropad2d: expected an input [C, H, W], got [8, 6]");
}

TEST_CASE("invalid options of convolution layers are refused by name") {
  CHECK_REFUSED((Conv2d{.outChannels = 10, .groups = 4}.validate()),
                "conv2d: groups must be at least 1 and divide outChannels, got 4 and 10");
  CHECK_THROWS_AS((Conv2d{.outChannels = 10, .groups = 0}.validate()), InvalidArgument);
  CHECK_REFUSED((Conv2d{.outChannels = 10, .activation = Activation::Softmax}.validate()),
                "conv2d: activation cannot be softmax; add an ActivationLayer after it");
  CHECK_THROWS_AS(ConvTranspose2d{}.validate(), InvalidArgument);
  CHECK_THROWS_AS((ConvTranspose2d{.outChannels = 10, .groups = 4}.validate()), InvalidArgument);
  CHECK_THROWS_AS((ConvTranspose2d{.outChannels = 1, .kernel = {0, 1}}.validate()), InvalidArgument);
  CHECK_THROWS_AS((ConvTranspose2d{.outChannels = 1, .padding = {0, -1}}.validate()), InvalidArgument);
  CHECK_THROWS_AS((ConvTranspose2d{.outChannels = 1, .activation = Activation::Softmax}.validate()),
                  InvalidArgument);
  CHECK_REFUSED(
      (ConvTranspose2d{.outChannels = 1, .outputPadding = {1, 0}}.validate()),
      "convtranspose2d: outputPadding must be at least 0 and below the stride, got 1 with stride 1");
  CHECK_THROWS_AS(Conv1d{}.validate(), InvalidArgument);
  CHECK_THROWS_AS((Conv1d{.outChannels = 10, .groups = 4}.validate()), InvalidArgument);
  CHECK_THROWS_AS((Conv1d{.outChannels = 1, .stride = 0}.validate()), InvalidArgument);
  CHECK_THROWS_AS((Conv1d{.outChannels = 1, .padding = -1}.validate()), InvalidArgument);
  CHECK_THROWS_AS((Conv1d{.outChannels = 1, .activation = Activation::Softmax}.validate()), InvalidArgument);
  CHECK_REFUSED((Conv1d{.outChannels = 1, .padding = 1, .causal = true}.validate()),
                "conv1d: a causal convolution has its own padding, so padding must be 0, got 1");
  CHECK_REFUSED((Upsample2d{.scale = {0, 2}}.validate()), "upsample2d: scale must be at least 1, got [0, 2]");
  CHECK_REFUSED((ZeroPad2d{.padding = {0, 0, -1, 0}}.validate()),
                "zeropad2d: padding cannot be negative, got [0, 0, -1, 0]");
}

}  // namespace muster
