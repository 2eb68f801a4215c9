#include "muster/core/ops/sequence.h"

#include "tests/core/ops/test.h"

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

TEST_ON_DEVICES("masked steps of any number of features become zero, also in place") {
  test::Place<Where> on;
  std::mt19937_64 random(8);
  for (const std::int64_t features : {1, 3, 4, 12, 37, 64}) {
    CAPTURE(features);
    const Shape shape{5, 7, features};
    Array x = test::randomArray(shape, random), mask({5, 7}), expected = x;
    for (std::int64_t step = 0; step < 35; ++step) {
      mask.at(step) = random() % 2 == 0 ? 0.0 : 1.0;
      if (mask.at(step) != 0) continue;
      std::fill_n(&x.at(step * features), features, test::kNan);
      std::fill_n(&expected.at(step * features), features, 0);
    }
    Tensor y = on.nan(shape), same = on(x), whole = on.nan(shape);
    maskSteps(same, on(mask), y, on.context);
    maskSteps(same, on(mask), same, on.context);
    maskSteps(y, {}, whole, on.context);
    for (const Tensor& result : {y, same, whole}) CHECK(test::maxError(on.get(result), expected) == 0);
  }
}

TEST_ON_DEVICES(
    "the last unmasked step and the mean of the unmasked ones are computed, with their gradients; without a "
    "mask all count") {
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
      test::Place<Where> on(threads);
      const auto check = [&](auto forward, auto backward, const auto& expected,
                             const auto& expectedGradient) {
        Tensor y = on.nan(c.gradY.shape()), gradX = on.nan(c.x.shape());
        forward(on(c.x), on(c.mask), y, on.context);
        backward(on(c.gradY), on(c.mask), gradX, on.context);
        CHECK(test::maxError(on.get(y), Array(y.shape(), expected)) == 0);
        CHECK(test::maxError(on.get(gradX), Array(c.x.shape(), expectedGradient)) == 0);
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
