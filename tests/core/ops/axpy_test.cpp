#include "muster/core/ops/axpy.h"

#include "tests/support/arrays.h"
#include "tests/support/devices.h"
#include "tests/support/test.h"

using namespace muster;

using test::randomTensor;

TEST_CASE_ON("axpy computes y + a x with one rounding, whatever the device, the size and the threads", Where,
             MUSTER_TEST_DEVICES) {
  for (const DType type : {DType::Float32, DType::Float64})
    for (const int threads : test::threadCounts<Where>({1, 3}))
      for (const std::int64_t n : {0, 1, 7, 1009, 100003}) {
        if (!Where::device().isCpu() && (type == DType::Float64 || n == 0)) continue;
        CAPTURE(threads);
        CAPTURE(n);
        Context context(Where::device(), {.threads = threads});
        const Tensor x = randomTensor(n, "x", type), before = randomTensor(n, "y", type);
        Tensor y = copyTo(before, Where::device()), again = copyTo(before, Where::device());
        for (Tensor* out : {&y, &again}) axpy(-0.3, copyTo(x, Where::device()), *out, context);
        context.synchronize();
        CHECK(test::sameBits(y, again));
        const Tensor got = copyTo(y, Device::cpu());
        long double worst = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const long double exact = test::valueAt(before, i) + -0.3L * test::valueAt(x, i);
          worst = std::max(worst, std::abs(test::valueAt(got, i) - exact));
        }
        CHECK(worst <= (type == DType::Float32 ? std::numeric_limits<float>::epsilon()
                                               : std::numeric_limits<double>::epsilon()));
      }
}

TEST_CASE_ON("axpy may read and write the same tensor", Where, MUSTER_TEST_DEVICES) {
  Context context(Where::device());
  Tensor y = copyTo(Tensor::of({1, -2, 4}, {3}), Where::device());
  axpy(0.5, y, y, context);
  context.synchronize();
  CHECK(test::sameBits(y, Tensor::of({1.5f, -3, 6}, {3})));
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
