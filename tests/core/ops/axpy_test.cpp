#include "muster/core/ops/axpy.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"
#include "tests/support/arrays.h"
#include "tests/support/devices.h"
#include "tests/support/thrown.h"

using namespace muster;

namespace {

template <typename T>
Tensor randomTensor(std::int64_t n, const char* name) {
  const RandomStream random(41, name);
  Tensor tensor = Tensor::empty({n}, kDTypeOf<T>);
  for (std::int64_t i = 0; i < n; ++i)
    tensor.data<T>()[i] = static_cast<T>(2 * random.uniform(static_cast<std::uint64_t>(i)) - 1);
  return tensor;
}

}  // namespace

TEST_CASE_TEMPLATE("axpy computes y + a x with one rounding, whatever the size and the threads", T, float,
                   double) {
  for (const int threads : {1, 3})
    for (const std::int64_t n : {0, 1, 7, 1009, 100003}) {
      CAPTURE(threads);
      CAPTURE(n);
      Context context(Device::cpu(), {.threads = threads});
      const Tensor x = randomTensor<T>(n, "x"), before = randomTensor<T>(n, "y");
      Tensor y = cloneTensor(before);
      axpy(-0.3, x, y, context);
      double worst = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const long double exact = before.data<T>()[i] + -0.3L * x.data<T>()[i];
        worst = std::max(worst, static_cast<double>(std::abs(y.data<T>()[i] - exact)));
      }
      CHECK(worst <= std::numeric_limits<T>::epsilon());
      Tensor again = cloneTensor(before);
      axpy(-0.3, x, again, context);
      CHECK(test::sameBits(y, again));
    }
}

TEST_CASE_TEMPLATE("axpy agrees with the CPU to one rounding on each device", Where, MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
  Context context(Where::device());
  for (const std::int64_t n : {1, 7, 1009, 100003}) {
    CAPTURE(n);
    const Tensor x = randomTensor<float>(n, "x"), before = randomTensor<float>(n, "y");
    Tensor y = copyTo(before, Where::device());
    axpy(-0.3, copyTo(x, Where::device()), y, context);
    context.synchronize();
    const Tensor got = copyTo(y, Device::cpu());
    double worst = 0;
    for (std::int64_t i = 0; i < n; ++i)
      worst = std::max(
          worst, std::abs(got.data<float>()[i] - (before.data<float>()[i] + -0.3 * x.data<float>()[i])));
    CHECK(worst <= std::numeric_limits<float>::epsilon());
  }
}

TEST_CASE_TEMPLATE("axpy may read and write the same tensor", Where, MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
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
