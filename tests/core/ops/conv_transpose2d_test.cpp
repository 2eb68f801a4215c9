#include "muster/core/ops/conv_transpose2d.h"

#include "tests/core/ops/test.h"
#include "tests/support/reference_ops.h"
#include "tests/support/shapes2d.h"

namespace muster {
namespace {

using test::Array;
using test::convTranspose;
namespace reference = test::reference;

TEST_IN_MATH_MODES(
    "transposed convolutions agree with the reference, for every implementation and number of threads") {
  const auto tolerance = [](std::int64_t terms) {
    return test::productSumError(terms, Where::kProductError);
  };
  std::mt19937_64 random(test::freshSeed());
  const ConvTranspose2dShape shapes[] = {
      convTranspose({2, 3, 4, 5}, 2, {.kernel = 3}),
      convTranspose({2, 5, 3, 4}, 1,  // an image
                    {.kernel = {4, 3}, .stride = {2, 3}, .padding = {1, 0}, .outputPadding = {1, 2}}),
      convTranspose({2, 32, 4, 4}, 16, {.kernel = 4, .stride = 2, .padding = 1}),
      convTranspose({17, 4, 3, 3}, 6, {.kernel = 5}),
      convTranspose({2, 4, 3, 3}, 6, {.kernel = 2, .stride = 2, .dilation = {2, 1}, .groups = 2}),
  };
  for (const auto& shape : shapes) {
    CAPTURE(shape.input().toString());
    const Array x = test::randomArray(shape.input(), random), w = test::randomArray(shape.weight(), random),
                b = test::randomArray({shape.outChannels}, random),
                g = test::randomArray(shape.output(), random);
    const Array y = reference::convTranspose2d(shape, x, w, b);
    const auto gradients = reference::convTranspose2dBackward(shape, x, w, g);
    const std::int64_t taps = shape.kernel[0] * shape.kernel[1], pixels = shape.height * shape.width;
    // A bias varies as much as three products.
    const double forwardTolerance = tolerance(shape.inChannels / shape.groups * taps + 3);
    for (const int threads : test::threadCounts<Where>({1, 2}))
      for (const Layout offered : {Layout::RowMajor, Layout::ChannelBlocks}) {
        CAPTURE(threads);
        test::Place<Where> on(threads);
        auto plan = planConvTranspose2d(shape, on.context, offered);
        CAPTURE(plan->implementation());
        const Tensor in = on(x, plan->inputLayout()), grad = on(g, plan->outputLayout()), weight = on(w);
        Tensor out = on.nan(shape.output(), plan->outputLayout()),
               gradIn = on.nan(shape.input(), plan->inputLayout());
        Tensor gradW = on.nan(shape.weight()), gradB = on.nan({shape.outChannels}), none;
        plan->forward(in, weight, on(b), out);
        plan->backwardData(grad, weight, gradIn);
        plan->backwardWeights(in, grad, gradW, gradB);
        CHECK(test::maxDifference(on.get(out), y) < forwardTolerance);
        CHECK(test::maxDifference(gradIn, gradients.x) < tolerance(shape.outChannels / shape.groups * taps));
        for (const Tensor& result : {out, gradIn}) CHECK(test::paddingIsZero(result));
        CHECK(test::maxDifference(gradW, gradients.weight) < tolerance(shape.batch * pixels));
        CHECK(test::maxDifference(gradB, gradients.bias) <
              test::sumError(g.shape.elements() / shape.outChannels, test::kUniform));
        plan->forward(in, weight, none, out);
        CHECK(test::maxDifference(on.get(out),
                                  reference::convTranspose2d(shape, x, w, Array({shape.outChannels}))) <
              forwardTolerance);
        plan->backwardWeights(in, grad, gradW, none);
      }
  }
}

TEST_CASE(
    "a transposed convolution's output has the size from which the convolution computes its input's size") {
  const auto shape = convTranspose(
      {2, 4, 5, 6}, 8,
      {.kernel = {3, 4}, .stride = {2, 3}, .padding = {1, 0}, .outputPadding = {1, 2}, .dilation = {1, 2}});
  CHECK(shape.output() == Shape{2, 8, 10, 24});
  CHECK(shape.convolution().output() == shape.input());
  CHECK(shape.convolution().weight() == shape.weight());
}

TEST_CASE("invalid transposed convolutions are refused by name") {
  Context context;
  CHECK_REFUSED(planConvTranspose2d({.inChannels = 4, .outChannels = 3, .groups = 2}, context),
                "conv_transpose2d: 2 groups do not divide 4 input and 3 output channels");
  CHECK_REFUSED(
      planConvTranspose2d({.stride = {2, 2}, .outputPadding = {0, 2}}, context),
      "conv_transpose2d: outputPadding must be at least 0 and below the stride, got 2 with stride 2");
  CHECK_REFUSED(planConvTranspose2d({.kernel = {3, 3}, .padding = {1, 2}}, context),
                "conv_transpose2d: padding 2 leaves nothing of an output of 3 rows or columns");
  CHECK_THROWS_AS(planConvTranspose2d({.height = 0}, context), InvalidArgument);
  CHECK_THROWS_AS(planConvTranspose2d({.kernel = {0, 1}}, context), InvalidArgument);
}

}  // namespace
}  // namespace muster
