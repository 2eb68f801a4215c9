#include "muster/core/ops/axpy.h"

#include "tests/core/ops/test.h"

using namespace muster;

using test::randomTensor;

TEST_ON_DEVICES("axpy computes y + a x with one rounding, whatever the device, the size and the threads") {
  for (const DType type : {DType::Float32, DType::Float64})
    for (const int threads : test::threadCounts<Where>({1, 3}))
      for (const std::int64_t n : {0, 1, 7, 1009, 100003}) {
        if (!Where::device().isCpu() && (type == DType::Float64 || n == 0)) continue;
        INFO("threads ", threads, ", n ", n);
        test::Place<Where> on(threads);
        const Tensor x = randomTensor(n, "x", type), before = randomTensor(n, "y", type);
        Tensor y = on(before), again = on(before);
        for (Tensor* out : {&y, &again}) axpy(-0.3, on(x), *out, on.context);
        const Tensor got = on.get(y);
        CHECK(test::sameBits(got, again));
        long double worst = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const long double exact = test::valueAt(before, i) + -0.3L * test::valueAt(x, i);
          worst = std::max(worst, std::abs(test::valueAt(got, i) - exact));
        }
        CHECK(worst <= (type == DType::Float32 ? std::numeric_limits<float>::epsilon()
                                               : std::numeric_limits<double>::epsilon()));
      }
}

TEST_ON_DEVICES("axpy may read and write the same tensor") {
  test::Place<Where> on;
  Tensor y = on(Tensor::of({1, -2, 4}, {3}));
  axpy(0.5, y, y, on.context);
  CHECK(test::floatsOf(on.get(y)) == std::vector{1.5f, -3.0f, 6.0f});
}

TEST_CASE("axpy refuses tensors that do not fit") {
  Context context;
  Tensor y = Tensor::zeros({3}), bytes = Tensor::zeros({3}, DType::UInt8);
  const auto refusal = [&](const Tensor& x, Tensor& target) {
    return test::thrown<InvalidArgument>([&] { axpy(1, x, target, context); });
  };
  CHECK(refusal(Tensor::zeros({4}), y) == "axpy: x is float32 [4] on cpu, expected float32 [3] on cpu");
  CHECK(refusal(Tensor::zeros({3}, DType::Float64), y) ==
        "axpy: x is float64 [3] on cpu, expected float32 [3] on cpu");
  CHECK(refusal(bytes, bytes) == "axpy: y must be float32 or float64, got uint8 [3] on cpu");
}
