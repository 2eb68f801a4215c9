#include "muster/core/ops/attention.h"

#include "tests/core/ops/test.h"

namespace muster {
namespace {

using test::Array;

struct AttentionGolden {
  bool causal;
  std::string_view mask;
  std::vector<double> y, gradX;
};

#include "tests/core/ops/attention_golden.inc"

/// As values() in attention_golden.py.
Tensor numbers(const Shape& shape, std::int64_t salt) {
  Tensor tensor = Tensor::empty(shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>((5 * i * i + 3 * i + 7 * salt) % 17 - 8) / 8;
  return tensor;
}

Tensor maskNamed(std::string_view name) {
  if (name == "end") return Tensor::of({1, 1, 1, 0, 1, 1, 1, 1}, {2, 4});
  if (name == "anywhere") return Tensor::of({0, 1, 0, 1, 0, 0, 0, 0}, {2, 4});
  return {};
}

TEST_IN_MATH_MODES(
    "attention's outputs and gradients agree with a float64 script, masked or not, on any number of "
    "threads") {
  for (const auto& golden : kAttentionGolden)
    for (const int threads : test::threadCounts<Where>({1, 3})) {
      INFO("mask ", golden.mask, ", causal ", golden.causal);
      test::Place<Where> on(threads);
      const AttentionShape shape{.batch = 2, .steps = 4, .features = 4, .heads = 2, .causal = golden.causal};
      const auto plan = planAttention(shape, true, on.context);
      const Tensor x = on(numbers(shape.input(), 1)), gradY = on(numbers(shape.output(), 2));
      const Tensor mask = on(maskNamed(golden.mask));
      Tensor y = on.nan(shape.output());
      plan->forward(x, mask, y);
      CHECK(test::maxError(on.get(y), Array(shape.output(), golden.y)) < 5e-7 + 8 * Where::kProductError);
      for (int call = 0; call < 2; ++call) {  // a second call must give the same
        Tensor gradX = on.nan(shape.input());
        plan->backward(x, mask, gradY, gradX);
        CHECK(test::maxError(on.get(gradX), Array(shape.input(), golden.gradX)) <
              1e-6 + 8 * Where::kProductError);
      }
    }
}

TEST_ON_DEVICES(
    "a padded sequence gives the results of the sequence alone, and a causal step does not depend on later "
    "ones") {
  std::mt19937_64 random(test::freshSeed());
  test::Place<Where> on;
  constexpr std::int64_t kSteps = 37, kLength = 21;
  for (const bool causal : {false, true}) {
    const AttentionShape shape{.batch = 1, .steps = kSteps, .features = 24, .heads = 3, .causal = causal};
    AttentionShape alone = shape;
    alone.steps = kLength;
    const Tensor x = on(test::randomArray(shape.input(), random, -2, 2));
    const Tensor cut = x.reshape({kSteps, 72}).rows(0, kLength).reshape(alone.input());
    Tensor mask = Tensor::zeros({1, kSteps});
    std::fill_n(mask.data<float>(), kLength, 1.0f);
    Tensor padded = on.nan(shape.output()), whole = on.nan(shape.output()), expected = on.nan(alone.output());
    planAttention(shape, false, on.context)->forward(x, on(mask), padded);
    planAttention(shape, false, on.context)->forward(x, {}, whole);
    planAttention(alone, false, on.context)->forward(cut, {}, expected);
    on.context.synchronize();
    const auto first = [&](const Tensor& y) {
      return test::toArray(y.reshape({kSteps, 24}).rows(0, kLength).reshape(alone.output()));
    };
    // Sequences of different lengths may be summed in different orders. A logit is the sum of 8 products of
    // numbers in [-2, 2), divided by sqrt 8. If each logit has the error d, each weight has the relative
    // error 2 d. The output, a weighted mean of numbers up to 2, then has twice that error plus the roundings
    // of its sum. Both results have this error.
    const double logit = test::sumError(8, 4 * test::kProduct) / std::sqrt(8.0);
    const double tolerance = 2 * (2 * 2 * logit + test::roundings(kSteps + 8, 2));
    CHECK(test::maxDifference(expected, first(padded)) < tolerance);
    if (causal) CHECK(test::maxDifference(expected, first(whole)) < tolerance);
    CHECK(test::maxError(padded.reshape({kSteps, 24}).rows(kLength, kSteps), Array({kSteps - kLength, 24})) ==
          0);
  }
}

TEST_IN_MATH_MODES("large products neither overflow nor give NaN, and NaN inputs give NaN") {
  test::Place<Where> on;
  const AttentionShape shape{.batch = 1, .steps = 3, .features = 2};
  const auto plan = planAttention(shape, true, on.context);
  Tensor x = numbers(shape.input(), 1), y = on.nan(shape.output()), gradX = on.nan(shape.input());
  for (float& value : x.span<float>()) value *= 1e4f;
  plan->forward(on(x), {}, y);
  plan->backward(on(x), {}, on(numbers(shape.output(), 2)), gradX);
  for (const Tensor& tensor : {on.get(y), on.get(gradX)})
    CHECK(std::ranges::all_of(tensor.span<float>(), [](float v) { return std::isfinite(v); }));
  x.data<float>()[0] = test::kNan;
  plan->forward(on(x), {}, y);
  CHECK(std::isnan(on.get(y).template data<float>()[0]));
}

TEST_CASE("attention refuses sizes and tensors that do not fit by name") {
  Context context;
  CHECK_REFUSED(planAttention({.steps = 2, .features = 6, .heads = 4}, true, context),
                "attention: 4 heads do not divide 6 features");
  CHECK_THROWS_AS(planAttention({.steps = 0, .features = 6}, true, context), InvalidArgument);
  const AttentionShape shape{.batch = 2, .steps = 3, .features = 4};
  const auto plan = planAttention(shape, false, context);
  Tensor x = Tensor::zeros(shape.input()), y = Tensor::zeros(shape.output());
  CHECK_REFUSED(plan->forward(y, {}, y),
                "attention: x is float32 [2, 3, 4] on cpu, expected float32 [2, 3, 12] on cpu");
  CHECK_THROWS_AS(plan->forward(x, Tensor::zeros({3, 2}), y), InvalidArgument);
  CHECK_REFUSED(plan->backward(x, {}, y, x), "attention: backward() of a plan that is not for training");
}

}  // namespace
}  // namespace muster
