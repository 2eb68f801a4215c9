#include "muster/core/nn/layer.h"
#include "muster/core/nn/layers.h"
#include "tests/support/test.h"

// Layers like convolutions, and pooling along sequences: parameters and errors. layers_golden_test checks
// their values, gradient_test their gradients in a network.

namespace muster {
namespace {

TEST_CASE("the weights of grouped convolutions cover one group, which gives their initial values") {
  struct Row {
    Layer layer;
    Shape input, weight;
    std::int64_t taps;
  };
  for (const auto& [layer, input, weight, taps] : std::initializer_list<Row>{
           {Conv2d{.outChannels = 12, .kernel = {3, 5}, .groups = 4}, {8, 9, 9}, {12, 2, 3, 5}, 15},
           {ConvTranspose2d{.outChannels = 12, .kernel = {3, 5}, .groups = 4}, {8, 9, 9}, {8, 3, 3, 5}, 15},
           {Conv1d{.outChannels = 12, .kernel = 5, .groups = 4}, {9, 8}, {12, 2, 5}, 5}}) {
    CAPTURE(layer.module().type());
    const auto specs = layer.module().parameters({&input, 1});
    REQUIRE(specs.size() == 2);
    CHECK(specs[0].shape == weight);
    CHECK(specs[0].fanIn == 2 * taps);
    CHECK(specs[0].fanOut == 3 * taps);
    CHECK(specs[1].shape == Shape{12});
  }
  CHECK((Conv2d{.outChannels = 12, .kernel = {3, 5}, .groups = 4}.outputShape({8, 9, 9})) == Shape{12, 7, 5});
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
  CHECK_REFUSED(MaxPool1d{}.outputShape({4}),
                "maxpool1d: expected a sequence [T, F] of at least one step, got [4]");
  CHECK_REFUSED(MaxPool1d{.kernel = 5}.outputShape({4, 2}),
                "maxpool1d: a kernel of 5 does not fit 4 steps with padding 0");
  CHECK(MaxPool1d{.kernel = 3}.outputShape({7, 2}) == Shape{2, 2});
  CHECK_REFUSED(Upsample2d{}.outputShape({8, 6}), "upsample2d: expected an input [C, H, W], got [8, 6]");
  CHECK_REFUSED(ZeroPad2d{}.outputShape({8, 6}), "zeropad2d: expected an input [C, H, W], got [8, 6]");
}

TEST_CASE("invalid options of convolutions and of pooling along sequences are refused by name") {
  CHECK_REFUSED((Conv2d{.outChannels = 10, .groups = 4}.validate()),
                "conv2d: groups must be at least 1 and divide outChannels, got 4 and 10");
  CHECK_REFUSED((Conv2d{.outChannels = 10, .activation = Activation::Softmax}.validate()),
                "conv2d: activation cannot be softmax; add an ActivationLayer after it");
  CHECK_REFUSED(
      (ConvTranspose2d{.outChannels = 1, .outputPadding = {1, 0}}.validate()),
      "convtranspose2d: outputPadding must be at least 0 and below the stride, got 1 with stride 1");
  CHECK_REFUSED((Conv1d{.outChannels = 1, .padding = 1, .causal = true}.validate()),
                "conv1d: a causal convolution has its own padding, so padding must be 0, got 1");
  CHECK_REFUSED((Upsample2d{.scale = {0, 2}}.validate()), "upsample2d: scale must be at least 1, got [0, 2]");
  CHECK_REFUSED((ZeroPad2d{.padding = {0, 0, -1, 0}}.validate()),
                "zeropad2d: padding cannot be negative, got [0, 0, -1, 0]");
  CHECK_REFUSED(MaxPool1d{.padding = 2}.validate(),
                "maxpool1d: padding must be between 0 and half the kernel, got 2 with kernel 2");
  constexpr auto kSoftmax = Activation::Softmax;
  for (const Layer& layer : std::initializer_list<Layer>{
           Conv2d{.outChannels = 10, .groups = 0}, ConvTranspose2d{},
           ConvTranspose2d{.outChannels = 10, .groups = 4},
           ConvTranspose2d{.outChannels = 1, .kernel = {0, 1}},
           ConvTranspose2d{.outChannels = 1, .padding = {0, -1}},
           ConvTranspose2d{.outChannels = 1, .activation = kSoftmax}, Conv1d{},
           Conv1d{.outChannels = 10, .groups = 4}, Conv1d{.outChannels = 1, .stride = 0},
           Conv1d{.outChannels = 1, .padding = -1}, Conv1d{.outChannels = 1, .activation = kSoftmax}})
    CHECK_THROWS_AS(layer.module().validate(), InvalidArgument);
}

}  // namespace
}  // namespace muster
