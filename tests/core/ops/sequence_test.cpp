#include "muster/core/ops/sequence.h"

#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "muster/core/base/error.h"
#include "tests/support/arrays.h"
#include "tests/support/devices.h"

namespace muster {
namespace {

using test::Array;

const float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Three sequences of three steps: padded at the start, at the end, and completely; padding is NaN.
const Tensor kX = Tensor::of(
    {kNaN, kNaN, 3, 4, 5, 7, /**/ 8, 9, kNaN, kNaN, kNaN, kNaN, /**/ kNaN, kNaN, kNaN, kNaN, kNaN, kNaN},
    {3, 3, 2});
const Tensor kMask = Tensor::of({0, 1, 1, /**/ 1, 0, 0, /**/ 0, 0, 0}, {3, 3});
const Tensor kGradY = Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2});

TEST_CASE_TEMPLATE("masked steps become zero, also in place", Where, MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
  const Device device = Where::device();
  Context context(device);
  const Tensor mask = copyTo(kMask, device);
  const Array expected({3, 3, 2}, {0, 0, 3, 4, 5, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  Tensor y = test::nanTensor({3, 3, 2}, Layout::RowMajor, device);
  maskSteps(copyTo(kX, device), mask, y, context);
  context.synchronize();
  CHECK(test::maxError(y, expected) == 0);
  Tensor same = copyTo(kX, device);
  maskSteps(same, mask, same, context);
  context.synchronize();
  CHECK(test::maxError(same, expected) == 0);
  Tensor whole = test::nanTensor({3, 3, 2}, Layout::RowMajor, device);
  maskSteps(y, {}, whole, context);
  context.synchronize();
  CHECK(test::sameBits(whole, y));
}

TEST_CASE_TEMPLATE("masked steps of any number of features become zero", Where, MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
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
    Tensor y = test::nanTensor(shape, Layout::RowMajor, device);
    maskSteps(test::toTensor(x, Layout::RowMajor, device), test::toTensor(mask, Layout::RowMajor, device), y,
              context);
    context.synchronize();
    CHECK(test::maxError(y, expected) == 0);
  }
}

TEST_CASE_TEMPLATE(
    "the last unmasked step and the mean of the unmasked ones are computed, with their gradients", Where,
    MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
  const Device device = Where::device();
  const Tensor x = copyTo(kX, device), mask = copyTo(kMask, device), gradY = copyTo(kGradY, device);
  for (const int threads : test::threadCounts<Where>({1, 2})) {
    Context context(device, {.threads = threads});
    Tensor y = test::nanTensor({3, 2}, Layout::RowMajor, device),
           gradX = test::nanTensor({3, 3, 2}, Layout::RowMajor, device);
    lastStepForward(x, mask, y, context);
    context.synchronize();
    CHECK(test::maxError(y, Array({3, 2}, {5, 7, 8, 9, 0, 0})) == 0);
    lastStepBackward(gradY, mask, gradX, context);
    context.synchronize();
    CHECK(test::maxError(gradX, Array({3, 3, 2}, {0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})) ==
          0);

    y = test::nanTensor({3, 2}, Layout::RowMajor, device);
    gradX = test::nanTensor({3, 3, 2}, Layout::RowMajor, device);
    meanOverTimeForward(x, mask, y, context);
    context.synchronize();
    CHECK(test::maxError(y, Array({3, 2}, {4, 5.5, 8, 9, 0, 0})) == 0);
    meanOverTimeBackward(gradY, mask, gradX, context);
    context.synchronize();
    CHECK(test::maxError(gradX,
                         Array({3, 3, 2}, {0, 0, 0.5, 1, 0.5, 1, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})) == 0);
  }
}

TEST_CASE_TEMPLATE("without a mask all steps count", Where, MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
  const Device device = Where::device();
  Context context(device);
  const Tensor x = copyTo(Tensor::of({1, 2, 3, 4, 5, 9}, {1, 3, 2}), device);
  const Tensor gradY = copyTo(Tensor::of({3, 6}, {1, 2}), device);
  Tensor y = test::nanTensor({1, 2}, Layout::RowMajor, device),
         gradX = test::nanTensor({1, 3, 2}, Layout::RowMajor, device);
  lastStepForward(x, {}, y, context);
  context.synchronize();
  CHECK(test::maxError(y, Array({1, 2}, {5, 9})) == 0);
  lastStepBackward(gradY, {}, gradX, context);
  context.synchronize();
  CHECK(test::maxError(gradX, Array({1, 3, 2}, {0, 0, 0, 0, 3, 6})) == 0);
  meanOverTimeForward(x, {}, y, context);
  context.synchronize();
  CHECK(test::maxError(y, Array({1, 2}, {3, 5})) == 0);
  meanOverTimeBackward(gradY, {}, gradX, context);
  context.synchronize();
  CHECK(test::maxError(gradX, Array({1, 3, 2}, {1, 2, 1, 2, 1, 2})) == 0);
}

TEST_CASE("operations on sequences refuse tensors that do not fit by name") {
  Context context;
  Tensor y = Tensor::zeros({3, 2}), empty = Tensor::zeros({3, 0, 2});
  CHECK_THROWS_WITH_AS(
      lastStepForward(empty, {}, y, context),
      "last step: expected float32 sequences [N, T, F] of at least one step, got float32 [3, 0, 2] "
      "on cpu",
      InvalidArgument);
  CHECK_THROWS_WITH_AS(meanOverTimeForward(kX, Tensor::zeros({3, 2}), y, context),
                       "mean over time: mask is float32 [3, 2] on cpu, expected float32 [3, 3] on cpu",
                       InvalidArgument);
  CHECK_THROWS_AS(maskSteps(kX, {}, y, context), InvalidArgument);
  CHECK_THROWS_AS(lastStepBackward(kX, {}, y, context), InvalidArgument);
}

}  // namespace
}  // namespace muster
