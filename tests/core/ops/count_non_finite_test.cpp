#include "muster/core/ops/count_non_finite.h"

#include "tests/core/ops/test.h"

using namespace muster;
using namespace muster::test;

TEST_ON_DEVICES("countNonFinite counts NaN and infinities, but not the largest numbers") {
  Place<Where> on;
  const auto counted = [&](const Tensor& x) {  // the count begins at 10
    Tensor count = Tensor::zeros({1}, DType::Float64);
    *count.data<double>() = 10;
    count = on(count);
    countNonFinite(on(x), count, on.context);
    return valueAt(on.get(count), 0);
  };
  for (const DType type : {DType::Float32, DType::Float64})
    for (const std::int64_t n : {1, 3, 255, 257, 4099, 1'000'003}) {
      const Tensor x = Tensor::zeros({n}, type);
      const double largest = type == DType::Float32 ? static_cast<double>(std::numeric_limits<float>::max())
                                                    : std::numeric_limits<double>::max();
      setValue(x, n / 2, -largest);
      CHECK(counted(x) == 10);
      setValue(x, 0, std::nan(""));
      CHECK(counted(x) == 11);
      setValue(x, n - 1, -std::numeric_limits<double>::infinity());
      CHECK(counted(x) == (n == 1 ? 11 : 12));
    }
  CHECK(counted(Tensor::zeros({0})) == 10);
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
