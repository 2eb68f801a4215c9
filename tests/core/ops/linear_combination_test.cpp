#include "muster/core/ops/linear_combination.h"

#include "muster/core/ops/non_finite.h"
#include "tests/core/ops/test.h"

using namespace muster;
using muster::test::sameBits;
using muster::test::thrown;
using muster::test::valueAt;

namespace {

/// Element i is scale * (i % 101 - 50), which float32 holds exactly for the scales used here.
Tensor ramp(std::int64_t elements, double scale, DType type) {
  Tensor t = Tensor::empty({elements}, type);
  for (std::int64_t i = 0; i < elements; ++i) test::setValue(t, i, scale * static_cast<double>(i % 101 - 50));
  return t;
}

}  // namespace

TEST_ON_DEVICES("linear combinations equal exactly known sums, over element types, sizes and ranges") {
  test::Place<Where> on;
  for (const DType out : {DType::Float32, DType::Float64})
    for (const DType type : {DType::Float32, DType::Float64})
      for (const std::int64_t n : {1, 7, 255, 256, 257, 40000}) {
        CAPTURE(n);
        const std::int64_t begin = n / 7, end = n - n / 5;
        const Tensor target = on(ramp(n, 1, out));
        const std::array terms{Term{2, on(ramp(n, 0.5, type))}, Term{0, on(ramp(n, test::kNan, type))},
                               Term{-0.25, on(ramp(n, 8, DType::Float32))}, Term{3, target}};
        linearCombination(terms, target, begin, end, on.context);
        test::Array expected = test::toArray(ramp(n, 1, out));
        for (std::int64_t i = begin; i < end; ++i) expected.at(i) *= 1 - 2 + 3;
        CHECK(test::maxError(on.get(target), expected) == 0);
      }
}

TEST_ON_DEVICES("one term of factor 1 is a copy, bit for bit, and no terms give zeros") {
  test::Place<Where> on;
  const Tensor source = Tensor::of({-0.0f, 1e-45f, 3e38f, test::kInfinity, 0.1f, test::kNan}, {6});
  const Tensor target = on(Tensor::of({1, 2, 3, 4, 5, 6}, {6}));
  linearCombination(std::array{Term{1, on(source)}}, target, 0, 6, on.context);
  CHECK(sameBits(on.get(target), source));
  linearCombination({}, target, 0, 6, on.context);
  CHECK(sameBits(on.get(target), Tensor::zeros({6})));
}

TEST_CASE("a result that is not finite is not written, and is named") {
  const float most = std::numeric_limits<float>::max(), infinity = test::kInfinity;
  const std::int64_t n = 100'000;
  for (const int threads : {1, 3})
    for (const DType type : {DType::Float32, DType::Float64}) {
      CAPTURE(static_cast<int>(type));
      Context context(Device::cpu(), {.threads = threads});
      const auto combined = [&](float bad, double factor) {
        Tensor values = Tensor::zeros({n}), out = Tensor::zeros({n}, type);
        values.data<float>()[70'001] = bad;
        const auto text = thrown<NonFiniteResult>([&] {
          linearCombination(std::array{Term{factor, values}, Term{1, out}}, out, 0, n, context);
        });
        for (std::int64_t i = 0; i < n; ++i) REQUIRE(std::isfinite(valueAt(out, i)));
        return text;
      };
      const std::string told = "linearCombination: the result is not finite, at element 70001";
      CHECK(combined(test::kNan, 1) == told);
      CHECK(combined(-infinity, 0.5) == told);
      CHECK(combined(most, 1) == "");
      CHECK(combined(-most, 2) == (type == DType::Float32 ? told : ""));
      // Halfway to 2^128 rounds up, a little less does not.
      CHECK(combined(-most, 1 + 0x1p-25 - 0x1p-40) == "");
      CHECK(combined(most, 1 + 0x1p-25 + 0x1p-40) == (type == DType::Float32 ? told : ""));
    }
}

TEST_CASE("a linear combination is rounded once") {
  // 2^24 + 1 is no float32: rounded after each term the sum would stay 2^24.
  Context context;
  const Tensor out = Tensor::zeros({1});
  const std::array terms{Term{1, Tensor::of({16777216}, {1})}, Term{1, Tensor::of({1}, {1})},
                         Term{1, Tensor::of({1}, {1})}};
  linearCombination(terms, out, 0, 1, context);
  CHECK(out.data<float>()[0] == 16777218);
}

TEST_ON_DEVICES("squared distances and inner products equal exactly known values") {
  test::Place<Where> on;
  Context& context = on.context;
  const std::int64_t n = 10100;  // a hundred ramps
  const auto there = [&](double scale, DType type) { return on(ramp(n, scale, type)); };
  const Tensor a = there(1, DType::Float32), half = there(0.5, DType::Float64),
               b = there(-0.5, DType::Float64), c = there(0.25, DType::Float32), none;
  const double squares = 2 * 42925;  // of 1 to 50, on both sides of 0
  CHECK(squaredDistance(a, none, 0, n, context) == 100 * squares);
  CHECK(squaredDistance(a, half, 0, n, context) == 100 * squares / 4);
  CHECK(squaredDistance(a, none, 50, 52, context) == 1);
  CHECK(squaredDistance(a, none, 50, 50, context) == 0);
  CHECK(innerProduct(a, b, none, 0, n, context) == 100 * squares * -0.5);
  CHECK(innerProduct(a, b, c, 0, n, context) == 100 * squares * 0.75 * -0.75);
  CHECK(innerProduct(a, b, c, 49, 50, context) == 0.75 * -0.75);
  CHECK(thrown<InvalidArgument>([&] {
          innerProduct(a, Tensor::zeros({3}), c, 0, n, context);
        }).starts_with("innerProduct: expected float32 or float64, row-major, with 10100 elements"));
}

TEST_CASE("linear combinations refuse tensors that do not fit") {
  Context context;
  const Tensor out = Tensor::zeros({4});
  const auto refusal = [&](const Term& term, std::int64_t end = 4) {
    return thrown<InvalidArgument>([&] { linearCombination(std::array{term}, out, 0, end, context); });
  };
  for (const Tensor& bad : {Tensor::zeros({3}), Tensor::zeros({4}, DType::Int64)})
    CHECK(refusal({1, bad}) ==
          "linearCombination: expected float32 or float64, row-major, with 4 elements on cpu, got " +
              bad.toString());
  CHECK(refusal({test::kNan, out}) == "linearCombination: a factor is nan");
  CHECK(refusal({1, out}, 5) == "linearCombination: [0, 5) is not within 4 elements");
}
