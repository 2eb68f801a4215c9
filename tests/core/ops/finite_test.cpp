#include "muster/core/ops/detail/finite.h"

#include "tests/support/test.h"

using namespace muster::detail;

namespace {

template <typename T>
void check() {
  using Limits = std::numeric_limits<T>;
  // In the order of magnitudes, whatever the sign; infinity and NaN come last.
  const std::vector<T> ascending{T(0), Limits::denorm_min(), Limits::min(), T(-1), T(2), -Limits::max()};
  for (std::size_t i = 0; i + 1 < ascending.size(); ++i)
    CHECK(magnitudeBits(ascending[i]) < magnitudeBits(ascending[i + 1]));
  CHECK(magnitudeBits(T(-0.0)) == 0);
  for (const T x : ascending) CHECK(isFinite<T>(magnitudeBits(x)));
  for (const T x : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()})
    CHECK_FALSE(isFinite<T>(magnitudeBits(x)));
  std::vector<T> values{T(1), T(-3), T(2)};
  CHECK(largestMagnitude(values.data(), 3) == magnitudeBits(T(3)));
  CHECK(largestMagnitude(values.data(), 1) == magnitudeBits(T(1)));
  CHECK(largestMagnitude(values.data(), 0) == 0);
  values[1] = Limits::quiet_NaN();
  CHECK_FALSE(isFinite<T>(largestMagnitude(values.data(), 3)));
}

}  // namespace

TEST_CASE("bits without the sign order numbers by magnitude, and show what is not finite") {
  check<float>();
  check<double>();
}
