#include "muster/core/ops/layer_norm.h"

#include "tests/core/ops/test.h"
#include "tests/support/reference_ops.h"

namespace muster {
namespace {

using test::Array;
namespace reference = test::reference;

// For fixed inputs: a few roundings of numbers up to about 5.
constexpr double kTolerance = 3e-6;
constexpr double kLargestGamma = 1.5;

struct Results {
  Tensor y, gradX, gradGamma, gradBeta;
};

/// @param inPlace  if the plan can, it writes gradX over gradY.
Results run(const LayerNormShape& shape, Context& context, const Array& x, const Array& gamma,
            const Array& beta, const Array& gradY, bool inPlace = false) {
  auto plan = planLayerNorm(shape, context);
  const Device device = context.device();
  const auto nan = [&](const Shape& s) { return test::nanTensor(s, device); };
  Results r{nan(shape.input()), nan(shape.input()), nan({shape.features}), nan({shape.features})};
  const auto on = [&](const Array& array) { return test::toTensor(array, device); };
  const Tensor input = on(x), weights = on(gamma), grad = on(gradY);
  if (inPlace && plan->gradientInPlace()) r.gradX = grad;
  plan->forward(input, weights, on(beta), r.y);
  plan->backward(input, weights, grad, r.gradX, r.gradGamma, r.gradBeta);
  context.synchronize();
  return r;
}

}  // namespace

TEST_ON_DEVICES("layer normalisation agrees with the reference over shapes and threads") {
  std::mt19937_64 random(test::freshSeed());
  for (const Shape& input :
       {Shape{1, 1}, Shape{3, 5}, Shape{40, 16}, Shape{17, 33}, Shape{700, 300}, Shape{2100, 5}}) {
    CAPTURE(input.toString());
    const LayerNormShape shape{.rows = input[0], .features = input[1], .epsilon = 1e-3};
    const Shape features{input[1]};
    const auto x = test::randomArray(input, random, -2, 3), gradY = test::randomArray(input, random),
               gamma = test::randomArray(features, random, -kLargestGamma, kLargestGamma),
               beta = test::randomArray(features, random);
    Context one(Where::device()), three(Where::device(), {.threads = 3});
    const auto got = run(shape, one, x, gamma, beta, gradY);
    const auto gradients = reference::layerNormBackward(x, gamma, gradY, 1e-3);
    // Statistics and sums are float64. A normalised value n = (x - mean) * inverse + rest has five roundings;
    // gamma and beta add two. The gradient inverse (gradY gamma - mean - n along) has eight, of terms up to
    // gamma's size.
    const auto spread = reference::spreadOf(Array({1, input[0], 1, input[1]}, x.values), 1e-3);
    CHECK(test::maxDifference(got.y, reference::layerNorm(x, gamma, beta, 1e-3)) <
          test::roundings(7, kLargestGamma * spread.distance + 1));
    CHECK(test::maxDifference(got.gradX, gradients.x) <
          test::roundings(8, spread.inverse * kLargestGamma * (2 + spread.distance)));
    CHECK(test::maxDifference(got.gradGamma, gradients.gamma) <
          test::sumError(input[0], test::kUniform, 5 * test::kRounding, 1));
    CHECK(test::maxDifference(got.gradBeta, gradients.beta) < test::sumError(input[0], test::kUniform, 0, 1));
    const auto again = run(shape, three, x, gamma, beta, gradY, true);
    CHECK(test::sameBits(got.y, again.y));
    CHECK(test::sameBits(got.gradX, again.gradX));
    CHECK(test::sameBits(got.gradGamma, again.gradGamma));
    CHECK(test::sameBits(got.gradBeta, again.gradBeta));
  }
}

TEST_ON_DEVICES(
    "layer normalisation without gamma and beta uses one and zero, and skips gradients that are not "
    "requested") {
  test::Place<Where> on;
  std::mt19937_64 random(3);
  const LayerNormShape shape{.rows = 4, .features = 21};
  const auto x = test::randomArray(shape.input(), random), gradY = test::randomArray(shape.input(), random);
  Array ones({21}), zeros({21});
  std::ranges::fill(ones.values, 1.0);
  const auto whole = run(shape, on.context, x, ones, zeros, gradY);
  auto plan = planLayerNorm(shape, on.context);
  Tensor y = on.nan(shape.input()), gradX = on.nan(shape.input()), none;
  Tensor gradGamma = on.nan({21}), gradBeta = on.nan({21});
  plan->forward(on(x), none, none, y);
  plan->backward(on(x), none, on(gradY), gradX, none, none);
  plan->backward(on(x), none, on(gradY), none, gradGamma, gradBeta);
  CHECK(test::sameBits(on.get(y), whole.y));
  CHECK(test::sameBits(gradX, whole.gradX));
  CHECK(test::sameBits(gradGamma, whole.gradGamma));
}

TEST_ON_DEVICES("layer normalisation loses no accuracy at a mean of 10,000 with a variance of 1") {
  std::mt19937_64 random(5);
  Context context(Where::device());
  const LayerNormShape shape{.rows = 20, .features = 300};
  auto x = test::randomArray(shape.input(), random, 10000 - 1.7, 10000 + 1.7);
  const auto gamma = test::randomArray({300}, random), beta = test::randomArray({300}, random),
             gradY = test::randomArray(shape.input(), random);
  const auto got = run(shape, context, x, gamma, beta, gradY);
  CHECK(test::maxError(got.y, reference::layerNorm(x, gamma, beta, 1e-5)) < kTolerance);
  CHECK(test::maxError(got.gradX, reference::layerNormBackward(x, gamma, gradY, 1e-5).x) < kTolerance);
}

TEST_CASE("layer normalisation refuses invalid shapes and tensors") {
  Context context;
  const auto refusal = [&](const LayerNormShape& shape) {
    return test::thrown<InvalidArgument>([&] { planLayerNorm(shape, context); });
  };
  CHECK(refusal({.rows = 0, .features = 3}) == "layer_norm: expected [rows, features], got [0, 3]");
  CHECK(refusal({.rows = 2, .features = 3, .epsilon = 0}) ==
        "layer_norm: epsilon must be finite and above 0, got 0");
  auto plan = planLayerNorm({.rows = 2, .features = 3}, context);
  Tensor x = Tensor::zeros({2, 3}), wrong = Tensor::zeros({3, 2}), none;
  CHECK_THROWS_AS(plan->forward(wrong, none, none, x), InvalidArgument);
  CHECK_THROWS_AS(plan->forward(x, wrong, none, x), InvalidArgument);
  CHECK_THROWS_AS(plan->backward(x, none, x, wrong, none, none), InvalidArgument);
}

}  // namespace muster
