#include "muster/core/ops/count_non_finite.h"

#include "muster/core/base/error.h"
#include "tests/support/arrays.h"
#include "tests/support/devices.h"
#include "tests/support/standard.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Counts on the device; the count begins at 10.
double counted(const Tensor& onCpu, Device device) {
  Context context(device);
  const Tensor x = copyTo(onCpu, device);
  Tensor count = Tensor::zeros({1}, DType::Float64);
  *count.data<double>() = 10;
  count = copyTo(count, device);
  countNonFinite(x, count, context);
  context.synchronize();
  return *copyTo(count, Device::cpu()).data<double>();
}

}  // namespace

TEST_CASE_ON("countNonFinite counts NaN and infinities, but not the largest numbers", Where,
             MUSTER_TEST_DEVICES) {
  for (const DType type : {DType::Float32, DType::Float64})
    for (const std::int64_t n : {1, 3, 255, 257, 4099, 1'000'003}) {
      const Tensor x = Tensor::zeros({n}, type);
      const double largest = type == DType::Float32 ? static_cast<double>(std::numeric_limits<float>::max())
                                                    : std::numeric_limits<double>::max();
      setValue(x, n / 2, -largest);
      CHECK(counted(x, Where::device()) == 10);
      setValue(x, 0, std::nan(""));
      CHECK(counted(x, Where::device()) == 11);
      setValue(x, n - 1, -std::numeric_limits<double>::infinity());
      CHECK(counted(x, Where::device()) == (n == 1 ? 11 : 12));
    }
  CHECK(counted(Tensor::zeros({0}), Where::device()) == 10);
}

TEST_CASE("countNonFinite refuses other types, and counts of another shape") {
  Context context;
  Tensor count = Tensor::zeros({1}, DType::Float64), two = Tensor::zeros({2}, DType::Float64);
  CHECK(thrown<InvalidArgument>([&] {
          countNonFinite(Tensor::zeros({3}, DType::Int64), count, context);
        }).starts_with("countNonFinite: expected float32 or float64"));
  CHECK(thrown<InvalidArgument>([&] {
          countNonFinite(Tensor::zeros({3}), two, context);
        }).starts_with("countNonFinite: the count must be float64 [1] on cpu"));
}
