#include "muster/core/ops/batch_norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "muster/core/base/error.h"
#include "tests/support/reference_ops.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

using test::Array;
namespace reference = test::reference;

constexpr Layout kLayouts[] = {Layout::RowMajor, Layout::ChannelsLast, Layout::ChannelBlocks,
                               Layout::SampleBlocks};

std::vector<Layout> layoutsOf(const Shape& input) {
  if (input.rank() == 2) return {Layout::RowMajor};
  return {std::begin(kLayouts), std::end(kLayouts)};
}

Tensor nanSums(const BatchNormShape& shape) {
  Tensor sums = Tensor::empty({2, shape.channels()}, DType::Float64);
  std::ranges::fill(sums.span<double>(), std::numeric_limits<double>::quiet_NaN());
  return sums;
}

/// All that a pass forward and one back give, with the batch's statistics.
struct Results {
  Tensor y, gradX, gradGamma, gradBeta;
};

Results runTraining(const BatchNormShape& shape, Layout layout, Context& context, const Array& x,
                    const Array& gamma, const Array& beta, const Array& gradY) {
  auto plan = planBatchNorm(shape, layout, context);
  CHECK(plan->layout() == layout);
  const auto count = static_cast<double>(shape.valuesPerChannel());
  Results r{test::nanTensor(shape.input, layout), test::nanTensor(shape.input, layout),
            test::nanTensor({shape.channels()}), test::nanTensor({shape.channels()})};
  Tensor sums = nanSums(shape);
  const Tensor input = test::toTensor(x, layout), grad = test::toTensor(gradY, layout);
  plan->sums(input, sums);
  plan->normalise(input, sums, count, test::toTensor(gamma), test::toTensor(beta), r.y);
  plan->gradientSums(input, grad, sums, r.gradGamma, r.gradBeta);
  plan->gradient(input, grad, sums, count, r.gradX);
  return r;
}

struct Inputs {
  Inputs(const Shape& input, std::mt19937_64& random)
      : x(test::randomArray(input, random, -2, 3)),
        gamma(test::randomArray({input[1]}, random, -1.5, 1.5)),
        beta(test::randomArray({input[1]}, random)),
        mean(test::randomArray({input[1]}, random)),
        variance(test::randomArray({input[1]}, random, 0.5, 2)),
        gradY(test::randomArray(input, random)) {}
  Array x, gamma, beta, mean, variance, gradY;
};

/// Whole vectors and none, whole blocks and none, one position, several groups of sums.
const Shape kShapes[] = {{17, 20, 3, 5}, {2, 3, 7, 9}, {3, 33, 4, 4}, {1, 16, 2, 1},    {16, 1, 1, 1},
                         {5, 7, 1, 1},   {21, 23},     {2, 1},        {40, 37, 18, 11}, {300, 300}};

// A value is a few roundings away from the reference: those of x - mean, the product and the sum, of numbers
// up to about 5.
constexpr double kTolerance = 3e-6;
// A sum has up to 8000 terms about as large as itself, of which thirty-two at a time are added in float32.
constexpr double kSumTolerance = 3e-5;

}  // namespace

TEST_CASE("batch normalisation agrees with the reference over shapes, layouts, activations and threads") {
  const std::uint64_t seed = test::freshSeed();
  INFO("MUSTER_TEST_SEED=", seed);
  std::mt19937_64 random(seed);
  for (const Shape& input : kShapes) {
    const Inputs in(input, random);
    for (const auto activation : {Activation::Identity, Activation::ReLU}) {
      const BatchNormShape shape{.input = input, .epsilon = 1e-3, .activation = activation};
      const auto y = reference::batchNorm(shape, in.x, in.gamma, in.beta);
      const auto gradients = reference::batchNormBackward(shape, in.x, in.gamma, in.beta, in.gradY);
      for (const Layout layout : layoutsOf(input)) {
        CAPTURE(input.toString());
        CAPTURE(nameOf(layout));
        CAPTURE(nameOf(activation));
        Context one, three(Device::cpu(), {.threads = 3});
        const auto got = runTraining(shape, layout, one, in.x, in.gamma, in.beta, in.gradY);
        CHECK(test::maxError(got.y, y) < kTolerance);
        CHECK(test::maxError(got.gradX, gradients.x) < kTolerance);
        CHECK(test::maxError(got.gradGamma, gradients.gamma) < kSumTolerance);
        CHECK(test::maxError(got.gradBeta, gradients.beta) < kSumTolerance);
        CHECK(test::paddingIsZero(got.y));
        CHECK(test::paddingIsZero(got.gradX));
        const auto again = runTraining(shape, layout, three, in.x, in.gamma, in.beta, in.gradY);
        CHECK(test::sameBits(got.y, again.y));
        CHECK(test::sameBits(got.gradX, again.gradX));
        CHECK(test::sameBits(got.gradGamma, again.gradGamma));
        CHECK(test::sameBits(got.gradBeta, again.gradBeta));
      }
    }
  }
}

TEST_CASE("with given statistics it agrees with the reference, too") {
  const std::uint64_t seed = test::freshSeed();
  INFO("MUSTER_TEST_SEED=", seed);
  std::mt19937_64 random(seed);
  Context context;
  for (const Shape& input : kShapes)
    for (const auto activation : {Activation::Identity, Activation::ReLU})
      for (const Layout layout : layoutsOf(input)) {
        CAPTURE(input.toString());
        CAPTURE(nameOf(layout));
        CAPTURE(nameOf(activation));
        const Inputs in(input, random);
        const BatchNormShape shape{.input = input, .activation = activation};
        auto plan = planBatchNorm(shape, layout, context);
        Tensor y = test::nanTensor(input, layout), gradX = test::nanTensor(input, layout),
               gradGamma = test::nanTensor({input[1]}), gradBeta = test::nanTensor({input[1]}),
               sums = nanSums(shape);
        const Tensor x = test::toTensor(in.x, layout), gradY = test::toTensor(in.gradY, layout);
        plan->normaliseBy(x, test::toTensor(in.mean), test::toTensor(in.variance), test::toTensor(in.gamma),
                          test::toTensor(in.beta), y);
        plan->gradientSums(x, gradY, sums, gradGamma, gradBeta);
        plan->gradientBy(x, gradY, gradX);
        const auto gradients =
            reference::batchNormBackward(shape, in.x, in.mean, in.variance, in.gamma, in.beta, in.gradY);
        CHECK(test::maxError(y, reference::batchNorm(shape, in.x, in.mean, in.variance, in.gamma, in.beta)) <
              kTolerance);
        CHECK(test::maxError(gradX, gradients.x) < kTolerance);
        CHECK(test::maxError(gradGamma, gradients.gamma) < kSumTolerance);
        CHECK(test::maxError(gradBeta, gradients.beta) < kSumTolerance);
        CHECK(test::paddingIsZero(y));
        CHECK(test::paddingIsZero(gradX));
      }
}

TEST_CASE("without gamma and beta they are one and zero") {
  std::mt19937_64 random(3);
  Context context;
  const BatchNormShape shape{.input = {6, 5, 2, 2}};
  const Inputs in(shape.input, random);
  Array ones({5}), zeros({5});
  std::ranges::fill(ones.values, 1.0);
  const auto whole = runTraining(shape, Layout::RowMajor, context, in.x, ones, zeros, in.gradY);
  auto plan = planBatchNorm(shape, Layout::RowMajor, context);
  Tensor y = test::nanTensor(shape.input), gradX = test::nanTensor(shape.input), sums = nanSums(shape), none;
  const Tensor x = test::toTensor(in.x), gradY = test::toTensor(in.gradY);
  plan->sums(x, sums);
  plan->normalise(x, sums, 24, none, none, y);
  plan->gradientSums(x, gradY, sums, none, none);
  plan->gradient(x, gradY, sums, 24, gradX);
  CHECK(test::sameBits(y, whole.y));
  CHECK(test::sameBits(gradX, whole.gradX));
}

TEST_CASE("a mean of ten thousand beside a variance of one is no trouble") {
  std::mt19937_64 random(5);
  Context context;
  for (const Layout layout : kLayouts)
    for (const double mean : {1e4, -1e4}) {
      CAPTURE(nameOf(layout));
      const BatchNormShape shape{.input = {32, 20, 8, 8}};
      Inputs in(shape.input, random);
      for (double& value : in.x.values)  // variance 1: uniform of width sqrt(12)
        value = static_cast<float>(mean + (value - 0.5) * std::sqrt(12.0) / 5);
      auto plan = planBatchNorm(shape, layout, context);
      Tensor sums = nanSums(shape), y = test::nanTensor(shape.input, layout), none;
      Tensor running = Tensor::zeros({20}), variance = Tensor::zeros({20});
      const Tensor x = test::toTensor(in.x, layout);
      plan->sums(x, sums);
      plan->normalise(x, sums, 2048, none, none, y);
      plan->moveStatistics(1, running, variance);
      const auto [trueMean, trueVariance] = reference::channelMoments(in.x);
      CHECK(trueVariance.at(0) == doctest::Approx(1).epsilon(0.1));
      CHECK(test::maxError(running, trueMean) < 1e-7);  // one rounding to float32
      CHECK(test::maxError(variance, trueVariance) < 1e-6);
      Array ones({20}), zeros({20});
      std::ranges::fill(ones.values, 1.0);
      CHECK(test::maxError(y, reference::batchNorm(shape, in.x, ones, zeros)) < 1e-6);
      const auto got = runTraining(shape, layout, context, in.x, in.gamma, in.beta, in.gradY);
      const auto gradients = reference::batchNormBackward(shape, in.x, in.gamma, in.beta, in.gradY);
      CHECK(test::maxError(got.gradX, gradients.x) < kTolerance);
      CHECK(test::maxError(got.gradGamma, gradients.gamma) < kSumTolerance);
    }
}

TEST_CASE("statistics move by the momentum, but never to what is not finite") {
  Context context;
  const BatchNormShape shape{.input = {2, 3}};
  auto plan = planBatchNorm(shape, Layout::RowMajor, context);
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::of({1, 5, 2, 3, 5, infinity}, {2, 3});
  Tensor sums = nanSums(shape), y = test::nanTensor({2, 3}), none;
  plan->sums(x, sums);
  plan->normalise(x, sums, 2, none, none, y);
  Tensor mean = Tensor::of({10, 20, 30}, {3}), variance = Tensor::of({1, 2, 3}, {3});
  plan->moveStatistics(0.25, mean, variance);
  // Means 2, 5 and infinity; variances 1, 0 and NaN.
  CHECK(test::maxError(mean, Array({3}, {8, 16.25, 30})) == 0);
  CHECK(test::maxError(variance, Array({3}, {1, 1.5, 3})) == 0);
}

TEST_CASE("sums of two halves of a batch give the whole batch's results") {
  std::mt19937_64 random(8);
  Context context;
  const BatchNormShape whole{.input = {10, 6, 3, 3}, .activation = Activation::ReLU};
  BatchNormShape parts[] = {whole, whole};
  parts[0].input = {7, 6, 3, 3};
  parts[1].input = {3, 6, 3, 3};
  const Inputs in(whole.input, random);
  const auto expected = runTraining(whole, Layout::RowMajor, context, in.x, in.gamma, in.beta, in.gradY);
  const Tensor x = test::toTensor(in.x), gradY = test::toTensor(in.gradY), gamma = test::toTensor(in.gamma),
               beta = test::toTensor(in.beta);
  Tensor y = test::nanTensor(whole.input), gradX = test::nanTensor(whole.input), none;
  std::unique_ptr<BatchNormPlan> plans[2];
  Tensor total = Tensor::zeros({2, 6}, DType::Float64), sums = nanSums(whole);
  const auto rows = [](const Tensor& t, int part) { return part == 0 ? t.rows(0, 7) : t.rows(7, 10); };
  const auto add = [&] {
    for (int i = 0; i < 12; ++i) total.data<double>()[i] += sums.data<double>()[i];
  };
  for (int part = 0; part < 2; ++part) {
    plans[part] = planBatchNorm(parts[part], Layout::RowMajor, context);
    plans[part]->sums(rows(x, part), sums);
    add();
  }
  for (int part = 0; part < 2; ++part) {
    Tensor partOfY = rows(y, part);
    plans[part]->normalise(rows(x, part), total, 90, gamma, beta, partOfY);
  }
  CHECK(test::maxError(y, test::toArray(expected.y)) < 1e-6);
  setZero(total, context);
  for (int part = 0; part < 2; ++part) {
    plans[part]->gradientSums(rows(x, part), rows(gradY, part), sums, none, none);
    add();
  }
  for (int part = 0; part < 2; ++part) {
    Tensor partOfGradX = rows(gradX, part);
    plans[part]->gradient(rows(x, part), rows(gradY, part), total, 90, partOfGradX);
  }
  CHECK(test::maxError(gradX, test::toArray(expected.gradX)) < 1e-6);
}

TEST_CASE("a value that is not a number reaches the output and all of its channel") {
  Context context;
  const BatchNormShape shape{.input = {3, 2, 1, 1}, .activation = Activation::ReLU};
  for (const Layout layout : kLayouts) {
    CAPTURE(nameOf(layout));
    auto plan = planBatchNorm(shape, layout, context);
    const Tensor x = test::toTensor(Array(shape.input, {1, 2, std::nan(""), 3, 4, 5}), layout);
    Tensor sums = nanSums(shape), y = Tensor::zeros(shape.input, DType::Float32, Device::cpu(), layout), none;
    plan->sums(x, sums);
    plan->normalise(x, sums, 3, none, none, y);
    const Array got = test::toArray(y);
    for (int n = 0; n < 3; ++n) {
      CHECK(std::isnan(got.at(2 * n)));
      CHECK(std::isfinite(got.at(2 * n + 1)));
    }
  }
}

TEST_CASE("shapes, options and tensors that make no sense are refused") {
  Context context;
  const auto refusal = [&](const BatchNormShape& shape, Layout layout = Layout::RowMajor) {
    return test::thrown<InvalidArgument>([&] { planBatchNorm(shape, layout, context); });
  };
  CHECK(refusal({.input = {4, 3, 2}}) == "batch_norm: expected [N, C] or [N, C, H, W], got [4, 3, 2]");
  CHECK(refusal({.input = {0, 3}}) == "batch_norm: expected [N, C] or [N, C, H, W], got [0, 3]");
  CHECK(refusal({.input = {4, 3}, .epsilon = 0}) == "batch_norm: epsilon must be finite and above 0, got 0");
  CHECK(refusal({.input = {4, 3}, .activation = Activation::Tanh}) ==
        "batch_norm: the activation can be identity or relu, got tanh");
  CHECK(refusal({.input = {4, 3}}, Layout::ChannelBlocks) == "batch_norm: [4, 3] cannot be channel-blocks");
  auto plan = planBatchNorm({.input = {4, 3}}, Layout::RowMajor, context);
  Tensor x = Tensor::zeros({4, 3}), wrong = Tensor::zeros({4, 2}), narrow = Tensor::zeros({2, 3}),
         sums = Tensor::zeros({2, 3}, DType::Float64), none;
  CHECK_THROWS_AS(plan->sums(wrong, sums), InvalidArgument);
  CHECK_THROWS_AS(plan->sums(x, narrow), InvalidArgument);
  CHECK_THROWS_AS(plan->normalise(x, sums, 4, wrong, none, x), InvalidArgument);
  CHECK_THROWS_AS(plan->normalise(x, sums, 4, none, none, wrong), InvalidArgument);
  CHECK_THROWS_AS(plan->gradient(x, x, sums, 4, wrong), InvalidArgument);
}

}  // namespace muster
