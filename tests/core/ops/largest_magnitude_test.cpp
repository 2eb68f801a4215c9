#include "muster/core/ops/largest_magnitude.h"

#include "tests/core/ops/test.h"

using namespace muster;
using muster::test::setValue;
using muster::test::thrown;

TEST_CASE("largestMagnitude finds the largest magnitude of any sign inside a range, and nowhere else") {
  for (const DType type : {DType::Float32, DType::Float64})
    for (const std::int64_t n : {1, 15, 64, 1001})
      for (std::int64_t at = 0; at < n; at += 1 + n / 9) {
        const Tensor x = Tensor::zeros({n + 2}, type);
        setValue(x, 0, 9);
        setValue(x, n + 1, -9);
        setValue(x, 1 + at, at % 2 == 0 ? -2.5 : 2.5);
        CHECK(largestMagnitude(x, 1, n + 1) == 2.5);
        CHECK(largestMagnitude(x, 1, 1) == 0);
        setValue(x, 1 + at, -test::kInfinity);
        CHECK(largestMagnitude(x, 1, n + 1) == test::kInfinity);
        setValue(x, 1 + at, test::kNan);
        CHECK(std::isnan(largestMagnitude(x, 1, n + 1)));
      }
}

TEST_CASE("largestMagnitude refuses tensors and ranges that do not fit") {
  CHECK_REFUSED(largestMagnitude(Tensor::zeros({3}), 0, 4),
                "largestMagnitude: [0, 4) is not within 3 elements");
  CHECK(thrown<InvalidArgument>([] {
          largestMagnitude(Tensor::zeros({3}, DType::Int64), 0, 3);
        }).starts_with("largestMagnitude: expected float32 or float64"));
  float number = 0;
  const Tensor onGpu = Tensor::view(&number, {1}, DType::Float32, Device::cuda(0));
  CHECK(thrown<DeviceUnavailable>([&] { largestMagnitude(onGpu, 0, 1); }) ==
        "largestMagnitude: runs on the CPU only, got " + onGpu.toString());
}
