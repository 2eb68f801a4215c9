#include "muster/core/ops/sequence.h"

#include <random>

#include "tests/support/arrays.h"
#include "tests/support/devices.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::Array;

/// Three sequences of three steps: padded at the start, at the end, and completely; padding is NaN.
const Tensor kX =
    Tensor::of({test::kNan, test::kNan, 3, 4, 5, 7, /**/ 8, 9, test::kNan, test::kNan, test::kNan, test::kNan,
                /**/ test::kNan, test::kNan, test::kNan, test::kNan, test::kNan, test::kNan},
               {3, 3, 2});
const Tensor kMask = Tensor::of({0, 1, 1, /**/ 1, 0, 0, /**/ 0, 0, 0}, {3, 3});
const Tensor kGradY = Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2});

TEST_CASE_ON("masked steps become zero, also in place", Where, MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  Context context(device);
  const Tensor mask = copyTo(kMask, device);
  const Array expected({3, 3, 2}, {0, 0, 3, 4, 5, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  Tensor y = test::nanTensor({3, 3, 2}, device);
  maskSteps(copyTo(kX, device), mask, y, context);
  context.synchronize();
  CHECK(test::maxError(y, expected) == 0);
  Tensor same = copyTo(kX, device);
  maskSteps(same, mask, same, context);
  context.synchronize();
  CHECK(test::maxError(same, expected) == 0);
  Tensor whole = test::nanTensor({3, 3, 2}, device);
  maskSteps(y, {}, whole, context);
  context.synchronize();
  CHECK(test::sameBits(whole, y));
}

TEST_CASE_ON("masked steps of any number of features become zero", Where, MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  Context context(device);
  std::mt19937_64 random(8);
  for (const std::int64_t features : {1, 3, 4, 12, 37, 64}) {
    CAPTURE(features);
    const Shape shape{5, 7, features};
    const Array x = test::randomArray(shape, random);
    Array mask({5, 7}), expected(shape);
    for (std::int64_t step = 0; step < 35; ++step) {
      mask.at(step) = random() % 2 == 0 ? 0.0 : 1.0;
      for (std::int64_t f = step * features; f < (step + 1) * features; ++f)
        expected.at(f) = mask.at(step) == 0 ? 0.0 : x.at(f);
    }
    Tensor y = test::nanTensor(shape, device);
    maskSteps(test::toTensor(x, device), test::toTensor(mask, device), y, context);
    context.synchronize();
    CHECK(test::maxError(y, expected) == 0);
  }
}

TEST_CASE_ON(
    "the last unmasked step and the mean of the unmasked ones are computed, with their gradients; without a "
    "mask all count",
    Where, MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  struct Case {
    Tensor x, mask, gradY;
    std::vector<double> last, gradLast, mean, gradMean;
  };
  for (const Case& c : {Case{kX,
                             kMask,
                             kGradY,
                             {5, 7, 8, 9, 0, 0},
                             {0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                             {4, 5.5, 8, 9, 0, 0},
                             {0, 0, 0.5, 1, 0.5, 1, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
                        Case{Tensor::of({1, 2, 3, 4, 5, 9}, {1, 3, 2}),
                             Tensor(),
                             Tensor::of({3, 6}, {1, 2}),
                             {5, 9},
                             {0, 0, 0, 0, 3, 6},
                             {3, 5},
                             {1, 2, 1, 2, 1, 2}}})
    for (const int threads : test::threadCounts<Where>({1, 2})) {
      Context context(device, {.threads = threads});
      const Tensor x = copyTo(c.x, device), gradY = copyTo(c.gradY, device);
      const Tensor mask = c.mask.defined() ? copyTo(c.mask, device) : c.mask;
      const auto check = [&](auto forward, auto backward, const auto& expected,
                             const auto& expectedGradient) {
        Tensor y = test::nanTensor(gradY.shape(), device), gradX = test::nanTensor(x.shape(), device);
        forward(x, mask, y, context);
        backward(gradY, mask, gradX, context);
        context.synchronize();
        CHECK(test::maxError(y, Array(y.shape(), expected)) == 0);
        CHECK(test::maxError(gradX, Array(x.shape(), expectedGradient)) == 0);
      };
      check(lastStepForward, lastStepBackward, c.last, c.gradLast);
      check(meanOverTimeForward, meanOverTimeBackward, c.mean, c.gradMean);
    }
}

TEST_CASE("operations on sequences refuse tensors that do not fit by name") {
  Context context;
  Tensor y = Tensor::zeros({3, 2}), empty = Tensor::zeros({3, 0, 2});
  CHECK_REFUSED(
      lastStepForward(empty, {}, y, context),
      "last step: expected float32 sequences [N, T, F] of at least one step, got float32 [3, 0, 2] on cpu");
  CHECK_REFUSED(meanOverTimeForward(kX, Tensor::zeros({3, 2}), y, context),
                "mean over time: mask is float32 [3, 2] on cpu, expected float32 [3, 3] on cpu");
  CHECK_THROWS_AS(maskSteps(kX, {}, y, context), InvalidArgument);
  CHECK_THROWS_AS(lastStepBackward(kX, {}, y, context), InvalidArgument);
}

}  // namespace
}  // namespace muster
