#include "muster/core/ops/linear_combination.h"

#include "muster/core/ops/non_finite.h"
#include "tests/support/arrays.h"
#include "tests/support/devices.h"
#include "tests/support/test.h"

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

TEST_CASE_ON("linear combinations equal exactly known sums, over element types, sizes and ranges", Where,
             MUSTER_TEST_DEVICES) {
  Context context(Where::device());
  for (const DType out : {DType::Float32, DType::Float64})
    for (const DType type : {DType::Float32, DType::Float64})
      for (const std::int64_t n : {1, 7, 255, 256, 257, 40000}) {
        CAPTURE(n);
        const std::int64_t begin = n / 7, end = n - n / 5;
        const Tensor target = copyTo(ramp(n, 1, out), Where::device());
        const std::array terms{Term{2, copyTo(ramp(n, 0.5, type), Where::device())},
                               Term{0, copyTo(ramp(n, test::kNan, type), Where::device())},
                               Term{-0.25, copyTo(ramp(n, 8, DType::Float32), Where::device())},
                               Term{3, target}};
        linearCombination(terms, target, begin, end, context);
        context.synchronize();
        const Tensor got = copyTo(target, Device::cpu());
        bool good = true;
        for (std::int64_t i = 0; i < n; ++i) {
          const double x = static_cast<double>(i % 101 - 50);
          good = good && valueAt(got, i) == (i >= begin && i < end ? x - 2 * x + 3 * x : x);
        }
        CHECK(good);
      }
}

TEST_CASE_ON("one term of factor 1 is a copy, bit for bit, and no terms give zeros", Where,
             MUSTER_TEST_DEVICES) {
  Context context(Where::device());
  const Tensor source = Tensor::of({-0.0f, 1e-45f, 3e38f, test::kInfinity, 0.1f, test::kNan}, {6});
  const Tensor target = copyTo(Tensor::of({1, 2, 3, 4, 5, 6}, {6}), Where::device());
  linearCombination(std::array{Term{1, copyTo(source, Where::device())}}, target, 0, 6, context);
  context.synchronize();
  CHECK(sameBits(copyTo(target, Device::cpu()), source));
  linearCombination({}, target, 0, 6, context);
  context.synchronize();
  CHECK(sameBits(copyTo(target, Device::cpu()), Tensor::zeros({6})));
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

TEST_CASE_ON("squared distances equal exactly known values", Where, MUSTER_TEST_DEVICES) {
  Context context(Where::device());
  const std::int64_t n = 10100;  // a hundred ramps
  const Tensor a = copyTo(ramp(n, 1, DType::Float32), Where::device());
  const Tensor b = copyTo(ramp(n, 0.5, DType::Float64), Where::device());
  const double squares = 2 * 42925;  // of 1 to 50, on both sides of 0
  CHECK(squaredDistance(a, Tensor(), 0, n, context) == 100 * squares);
  CHECK(squaredDistance(a, b, 0, n, context) == 100 * squares / 4);
  CHECK(squaredDistance(a, Tensor(), 50, 52, context) == 1);
  CHECK(squaredDistance(a, Tensor(), 50, 50, context) == 0);
}

TEST_CASE_ON("inner products equal exactly known values", Where, MUSTER_TEST_DEVICES) {
  Context context(Where::device());
  const std::int64_t n = 10100;  // a hundred ramps
  const Tensor a = copyTo(ramp(n, 1, DType::Float32), Where::device());
  const Tensor b = copyTo(ramp(n, -0.5, DType::Float64), Where::device());
  const Tensor c = copyTo(ramp(n, 0.25, DType::Float32), Where::device());
  const double squares = 2 * 42925;  // of 1 to 50, on both sides of 0
  CHECK(innerProduct(a, b, Tensor(), 0, n, context) == 100 * squares * -0.5);
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
  CHECK(refusal({1, Tensor::zeros({3})}) ==
        "linearCombination: expected float32 or float64, row-major, with 4 elements on cpu, got float32 [3] "
        "on cpu");
  CHECK(refusal({1, Tensor::zeros({4}, DType::Int64)}) ==
        "linearCombination: expected float32 or float64, row-major, with 4 elements on cpu, got int64 [4] on "
        "cpu");
  CHECK(refusal({test::kNan, out}) == "linearCombination: a factor is nan");
  CHECK(refusal({1, out}, 5) == "linearCombination: [0, 5) is not within 4 elements");
}
