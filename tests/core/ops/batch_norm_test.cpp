#include "muster/core/ops/batch_norm.h"

#include <numbers>

#include "muster/core/ops/accumulate.h"
#include "tests/core/ops/test.h"
#include "tests/support/reference_ops.h"

namespace muster {
namespace {

using test::Array;
namespace reference = test::reference;

template <typename Where>
std::vector<Layout> layoutsOf(const Shape& input) {
  if (input.rank() == 2) return {Layout::RowMajor};
  return Where::layouts();
}

Tensor nanSums(const BatchNormShape& shape, Device device = Device::cpu()) {
  Tensor sums = Tensor::empty({2, shape.channels()}, DType::Float64);
  std::ranges::fill(sums.span<double>(), test::kNan);
  return copyTo(sums, device);
}

/// All results of a forward and a backward pass, with the batch's statistics.
struct Results {
  Tensor y, gradX, gradGamma, gradBeta;
};

void checkSameBits(const Results& a, const Results& b) {
  CHECK(test::sameBits(a.y, b.y));
  CHECK(test::sameBits(a.gradX, b.gradX));
  CHECK(test::sameBits(a.gradGamma, b.gradGamma));
  CHECK(test::sameBits(a.gradBeta, b.gradBeta));
}

template <typename Where>
Results nanResults(const BatchNormShape& shape, Layout layout, const test::Place<Where>& on) {
  return {on.nan(shape.input, layout), on.nan(shape.input, layout), on.nan({shape.channels()}),
          on.nan({shape.channels()})};
}

/// @param inPlace  if the plan can, it writes gradX over gradY.
template <typename Where>
Results runTraining(const BatchNormShape& shape, Layout layout, test::Place<Where>& on, const Array& x,
                    const Array& gamma, const Array& beta, const Array& gradY, bool inPlace = false) {
  auto plan = planBatchNorm(shape, layout, on.context);
  CHECK(plan->layout() == layout);
  const auto count = static_cast<double>(shape.valuesPerChannel());
  Results r = nanResults(shape, layout, on);
  Tensor sums = nanSums(shape, Where::device());
  const Tensor input = on(x, layout), grad = on(gradY, layout);
  if (inPlace && plan->gradientInPlace()) r.gradX = grad;
  plan->sums(input, sums);
  plan->normalise(input, sums, count, on(gamma), on(beta), r.y);
  plan->gradientSums(input, grad, sums, r.gradGamma, r.gradBeta);
  plan->gradient(input, grad, sums, count, r.gradX);
  on.context.synchronize();
  return r;
}

constexpr double kLargestGamma = 1.5;

struct Inputs {
  Inputs(const Shape& input, std::mt19937_64& random)
      : x(test::randomArray(input, random, -2, 3)),
        gamma(test::randomArray({input[1]}, random, -kLargestGamma, kLargestGamma)),
        beta(test::randomArray({input[1]}, random)),
        mean(test::randomArray({input[1]}, random)),
        variance(test::randomArray({input[1]}, random, 0.5, 2)),
        gradY(test::randomArray(input, random)) {}
  Array x, gamma, beta, mean, variance, gradY;
};

/// If a ReLU's input is within `tolerance` of zero, rounding decides whether the gradient passes: such
/// gradients are zero.
void spareKinks(const Array& normalised, double tolerance, Array& gradY) {
  for (std::int64_t i = 0; i < gradY.shape.elements(); ++i)
    if (std::abs(normalised.at(i)) < tolerance) gradY.at(i) = 0;
}

/// Shapes with and without whole vectors and whole blocks, with one position, and with several groups of
/// sums: 65,536 values each on a CPU, which sums up to 512 channels at a time. A GPU splits sums by shape:
/// several parts of many pixels, few pixels and one, and more parts than are read at once.
template <typename Where>
std::vector<Shape> shapes() {
  std::vector<Shape> all{{17, 20, 3, 5}, {2, 3, 7, 9}, {3, 33, 4, 4}, {1, 16, 2, 1}, {16, 1, 1, 1},
                         {5, 7, 1, 1},   {21, 23},     {2, 1},        {1, 1, 56, 50}};
  const auto large = Where::device().isCpu()
                         ? std::vector<Shape>{{9000, 16}, {20, 37, 18, 11}, {3, 1029, 2, 3}}
                         : std::vector<Shape>{{18000, 16}, {8800, 32},       {40, 37, 18, 11},
                                              {300, 300},  {1, 1, 560, 500}, {2001, 6, 2, 2}};
  all.insert(all.end(), large.begin(), large.end());
  return all;
}

// For fixed inputs: a few roundings of numbers up to about 5, and of sums of 8000 terms.
constexpr double kTolerance = 3e-6, kSumTolerance = 3e-5;
constexpr std::int64_t kRun = 32;  // terms summed in float32; these sums are added in float64

struct Tolerances {
  double y, gradX, gradGamma, gradBeta;
};

void checkNear(const Results& got, const Array& y, const reference::BatchNormGradients& gradients,
               const Tolerances& tolerances) {
  CHECK(test::maxDifference(got.y, y) < tolerances.y);
  CHECK(test::maxDifference(got.gradX, gradients.x) < tolerances.gradX);
  CHECK(test::maxDifference(got.gradGamma, gradients.gamma) < tolerances.gradGamma);
  CHECK(test::maxDifference(got.gradBeta, gradients.beta) < tolerances.gradBeta);
  CHECK(test::paddingIsZero(got.y));
  CHECK(test::paddingIsZero(got.gradX));
}

/// Bounds the errors of a normalisation by the batch's own statistics.
///
/// For each 32 values, the kernels sum two runs of 16 distances x - x_0 in float32, and the rest in float64.
/// If a channel's values differ by at most D, the k-th partial sum is about k D / 2, so that the sum of 32
/// has an error of deviation sqrt(2 sum k^2) u / sqrt 3 D / 2 = 16 u D. Eight deviations are 4 u D in the
/// mean; with the squares', they are 5 u D^2 in the variance. Let s = D / sqrt(variance + epsilon). A
/// normalised value n, at most s, then has an error of 4 s u from the mean, 2.4 s^2 n u from the variance,
/// and 4 n u from its own roundings.
Tolerances ownTolerances(const Array& x, double epsilon) {
  const auto [inverse, s] = reference::spreadOf(x, epsilon);
  const std::int64_t terms = x.shape.elements() / x.shape[1];
  const double ofScale = 2.4 * s * s, ofMean = 4 * s, ofValue = ofMean + ofScale * s + 4 * s;
  // An error of the mean shifts sum gn by a multiple of sum g, and one of the variance scales it. Each sum
  // has eight deviations at most.
  const double sum = 8 * test::kUniform * std::sqrt(static_cast<double>(terms));
  // gradX = gamma inverse (g - mean g - n mean gn). Both means are at most 1; the error of n is in mean gn,
  // too.
  return {.y = test::roundings(ofValue + s, kLargestGamma) + test::roundings(2),
          .gradX = test::roundings((2 + s) * (5 + ofScale) + ofValue + s * (ofMean + ofScale),
                                   kLargestGamma * inverse),
          .gradGamma = test::sumError(terms, test::kUniform, 4 * test::kRounding, kRun) +
                       test::roundings(ofMean + ofScale + 4, sum),
          .gradBeta = test::sumError(terms, test::kUniform, 0, kRun)};
}

}  // namespace

TEST_ON_DEVICES(
    "batch normalisation agrees with the reference over shapes, layouts, activations and threads") {
  std::mt19937_64 random(test::freshSeed());
  for (const Shape& input : shapes<Where>()) {
    Inputs in(input, random);
    const auto tolerances = ownTolerances(in.x, 1e-3);
    spareKinks(reference::batchNorm({.input = input, .epsilon = 1e-3}, in.x, in.gamma, in.beta), tolerances.y,
               in.gradY);
    for (const auto activation : {Activation::Identity, Activation::ReLU}) {
      const BatchNormShape shape{.input = input, .epsilon = 1e-3, .activation = activation};
      const auto y = reference::batchNorm(shape, in.x, in.gamma, in.beta);
      const auto gradients = reference::batchNormBackward(shape, in.x, in.gamma, in.beta, in.gradY);
      for (const Layout layout : layoutsOf<Where>(input)) {
        INFO(input.toString(), ", ", nameOf(layout), ", ", nameOf(activation));
        test::Place<Where> one, three(3);
        const auto got = runTraining(shape, layout, one, in.x, in.gamma, in.beta, in.gradY);
        checkNear(got, y, gradients, tolerances);
        checkSameBits(got, runTraining(shape, layout, three, in.x, in.gamma, in.beta, in.gradY, true));
      }
    }
  }
}

TEST_ON_DEVICES("batch normalisation agrees with the reference for given statistics") {
  test::Place<Where> on;
  std::mt19937_64 random(test::freshSeed());
  for (const Shape& input : shapes<Where>()) {
    // A normalised value is up to 4 / sqrt 0.5, and has four roundings before beta is added. Given means and
    // variances are at most so far from the values' that the mean square of n is below 3^2.
    constexpr double kLargestScale = kLargestGamma * std::numbers::sqrt2;
    const std::int64_t terms = input.elements() / input[1];
    const Tolerances tolerances{
        .y = test::roundings(5, 4 * kLargestScale) + test::roundings(2),
        .gradX = test::roundings(3, kLargestScale),
        .gradGamma = test::sumError(terms, 3 * test::kUniform, 2 * test::kRounding, kRun),
        .gradBeta = test::sumError(terms, test::kUniform, 0, kRun)};
    Inputs in(input, random);
    spareKinks(reference::batchNorm({.input = input}, in.x, in.mean, in.variance, in.gamma, in.beta),
               tolerances.y, in.gradY);
    for (const auto activation : {Activation::Identity, Activation::ReLU}) {
      const BatchNormShape shape{.input = input, .activation = activation};
      const auto expected = reference::batchNorm(shape, in.x, in.mean, in.variance, in.gamma, in.beta);
      const auto gradients =
          reference::batchNormBackward(shape, in.x, in.mean, in.variance, in.gamma, in.beta, in.gradY);
      for (const Layout layout : layoutsOf<Where>(input)) {
        INFO(input.toString(), ", ", nameOf(layout), ", ", nameOf(activation));
        auto plan = planBatchNorm(shape, layout, on.context);
        Results got = nanResults(shape, layout, on);
        Tensor sums = nanSums(shape, Where::device());
        const Tensor x = on(in.x, layout), gradY = on(in.gradY, layout);
        plan->normaliseBy(x, on(in.mean), on(in.variance), on(in.gamma), on(in.beta), got.y);
        plan->gradientSums(x, gradY, sums, got.gradGamma, got.gradBeta);
        plan->gradientBy(x, gradY, got.gradX);
        on.context.synchronize();
        checkNear(got, expected, gradients, tolerances);
      }
    }
  }
}

TEST_ON_DEVICES(
    "batch normalisation loses no accuracy at a mean of 10,000 with a variance of 1; without gamma and beta "
    "it uses one and zero") {
  test::Place<Where> on;
  std::mt19937_64 random(5);
  for (const Layout layout : Where::layouts())
    for (const double mean : {1e4, -1e4}) {
      CAPTURE(nameOf(layout));
      const BatchNormShape shape{.input = {32, 20, 8, 8}};
      Inputs in(shape.input, random);
      for (double& value : in.x.values)  // variance 1: uniform of width sqrt(12)
        value = static_cast<float>(mean + (value - 0.5) * std::sqrt(12.0) / 5);
      auto plan = planBatchNorm(shape, layout, on.context);
      Tensor sums = nanSums(shape, Where::device()), y = on.nan(shape.input, layout),
             gradX = on.nan(shape.input, layout), none;
      Tensor running = on(Array({20})), variance = on(Array({20}));
      const Tensor x = on(in.x, layout), gradY = on(in.gradY, layout);
      plan->sums(x, sums);
      plan->normalise(x, sums, 2048, none, none, y);
      plan->moveStatistics(1, running, variance);
      plan->gradientSums(x, gradY, sums, none, none);
      plan->gradient(x, gradY, sums, 2048, gradX);
      on.context.synchronize();
      const auto [trueMean, trueVariance] = reference::channelMoments(in.x);
      CHECK(trueVariance.at(0) == doctest::Approx(1).epsilon(0.1));
      CHECK(test::maxError(running, trueMean) < 1e-7);  // one rounding to float32
      CHECK(test::maxError(variance, trueVariance) < 1e-6);
      Array ones({20}), zeros({20});
      std::ranges::fill(ones.values, 1.0);
      CHECK(test::maxError(y, reference::batchNorm(shape, in.x, ones, zeros)) < 1e-6);
      CHECK(test::maxError(gradX, reference::batchNormBackward(shape, in.x, ones, zeros, in.gradY).x) <
            kTolerance);
      const auto got = runTraining(shape, layout, on, in.x, in.gamma, in.beta, in.gradY);
      const auto gradients = reference::batchNormBackward(shape, in.x, in.gamma, in.beta, in.gradY);
      CHECK(test::maxError(got.gradX, gradients.x) < kTolerance);
      CHECK(test::maxError(got.gradGamma, gradients.gamma) < kSumTolerance);
    }
}

TEST_ON_DEVICES(
    "running statistics move by the momentum, but never take a value that is not finite or overflows "
    "float32") {
  test::Place<Where> on;
  const float infinity = test::kInfinity, far = 1e20f;
  struct Moved {
    Shape input;
    std::vector<double> x;
    double momentum;
    std::vector<double> mean, variance, newMean, newVariance;
  };
  for (const auto& c :
       {// Means 2, 5 and infinity; variances 1, 0 and NaN.
        Moved{{2, 3}, {1, 5, 2, 3, 5, infinity}, 0.25, {10, 20, 30}, {1, 2, 3}, {8, 16.25, 30}, {1, 1.5, 3}},
        // Means 5e19 and 2; variances 2.5e39 and 1.
        Moved{{2, 2, 2, 2},
              {0, 0, 0, 0, 1, 1, 1, 1, far, far, far, far, 3, 3, 3, 3},
              0.5,
              {10, 20},
              {1, 2},
              {10, 11},
              {1, 1.5}}}) {
    const BatchNormShape shape{.input = c.input};
    const Shape channels{shape.channels()};
    auto plan = planBatchNorm(shape, Layout::RowMajor, on.context);
    const Tensor x = on(Array(c.input, c.x));
    Tensor sums = nanSums(shape, Where::device()), y = on.nan(c.input), none;
    plan->sums(x, sums);
    plan->normalise(x, sums, static_cast<double>(shape.valuesPerChannel()), none, none, y);
    Tensor mean = on(Array(channels, c.mean)), variance = on(Array(channels, c.variance));
    plan->moveStatistics(c.momentum, mean, variance);
    on.context.synchronize();
    CHECK(test::maxError(mean, Array(channels, c.newMean)) == 0);
    CHECK(test::maxError(variance, Array(channels, c.newVariance)) == 0);
  }
}

TEST_ON_DEVICES("the sums of two halves of a batch give the whole batch's results") {
  test::Place<Where> on;
  std::mt19937_64 random(8);
  const BatchNormShape whole{.input = {10, 6, 3, 3}, .activation = Activation::ReLU};
  BatchNormShape parts[] = {whole, whole};
  parts[0].input = {7, 6, 3, 3};
  parts[1].input = {3, 6, 3, 3};
  const Inputs in(whole.input, random);
  const auto expected = runTraining(whole, Layout::RowMajor, on, in.x, in.gamma, in.beta, in.gradY);
  const Tensor x = on(in.x), gradY = on(in.gradY), gamma = on(in.gamma), beta = on(in.beta);
  Tensor y = on.nan(whole.input), gradX = on.nan(whole.input), none;
  std::unique_ptr<BatchNormPlan> plans[2];
  Tensor total = Tensor::zeros({2, 6}, DType::Float64, Where::device()),
         sums = nanSums(whole, Where::device());
  const auto rows = [](const Tensor& t, int part) { return part == 0 ? t.rows(0, 7) : t.rows(7, 10); };
  const auto add = [&] {
    const Tensor both[] = {total, sums};
    sum(both, total, on.context);
  };
  for (int part = 0; part < 2; ++part) {
    plans[part] = planBatchNorm(parts[part], Layout::RowMajor, on.context);
    plans[part]->sums(rows(x, part), sums);
    add();
  }
  for (int part = 0; part < 2; ++part) {
    Tensor partOfY = rows(y, part);
    plans[part]->normalise(rows(x, part), total, 90, gamma, beta, partOfY);
  }
  on.context.synchronize();
  CHECK(test::maxError(y, test::toArray(expected.y)) < 1e-6);
  setZero(total, on.context);
  for (int part = 0; part < 2; ++part) {
    plans[part]->gradientSums(rows(x, part), rows(gradY, part), sums, none, none);
    add();
  }
  for (int part = 0; part < 2; ++part) {
    Tensor partOfGradX = rows(gradX, part);
    plans[part]->gradient(rows(x, part), rows(gradY, part), total, 90, partOfGradX);
  }
  on.context.synchronize();
  CHECK(test::maxError(gradX, test::toArray(expected.gradX)) < 1e-6);
}

TEST_ON_DEVICES("a NaN makes its whole channel NaN") {
  test::Place<Where> on;
  const BatchNormShape shape{.input = {3, 2, 1, 1}, .activation = Activation::ReLU};
  for (const Layout layout : Where::layouts()) {
    CAPTURE(nameOf(layout));
    auto plan = planBatchNorm(shape, layout, on.context);
    const Tensor x = on(Array(shape.input, {1, 2, test::kNan, 3, 4, 5}), layout);
    Tensor sums = nanSums(shape, Where::device()), none;
    Tensor y = Tensor::zeros(shape.input, DType::Float32, Where::device(), layout);
    plan->sums(x, sums);
    plan->normalise(x, sums, 3, none, none, y);
    on.context.synchronize();
    const Array got = test::toArray(y);
    for (int n = 0; n < 3; ++n) {
      CHECK(std::isnan(got.at(2 * n)));
      CHECK(std::isfinite(got.at(2 * n + 1)));
    }
  }
}

TEST_CASE("batch normalisation refuses invalid shapes, options and tensors") {
  Context context;
  const auto refusal = [&](const BatchNormShape& shape, Layout layout = Layout::RowMajor) {
    return test::thrown<InvalidArgument>([&] { planBatchNorm(shape, layout, context); });
  };
  for (const Shape& input : {Shape{4, 3, 2}, Shape{0, 3}})
    CHECK(refusal({.input = input}) ==
          "batch_norm: expected [N, C] or [N, C, H, W], got " + input.toString());
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
