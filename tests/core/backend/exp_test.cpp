#include "muster/core/backend/cpu/exp.h"

#include "tests/support/test.h"

namespace muster {
namespace {

using test::kInfinity;
using test::kNan;

/// Distance of `value` from the true one, in units in the last place of float32.
double units(float value, double expected) {
  if (expected == 0) return value == 0 ? 0 : 1e9;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(expected), -126) - 23);
  return std::abs(value - expected) / unit;
}

/// Calls f(x) for numbers of all magnitudes from `from` down to 1e-30, and for both signs if `both`.
template <typename F>
void forEachNumber(double from, bool both, F f) {
  for (double x = from; x > 1e-30; x *= 0.99) {
    f(static_cast<float>(-x));
    if (both) f(static_cast<float>(x));
  }
}

TEST_CASE("exp of negative numbers") {
  CHECK(cpu::expOfNegative(0) == 1);
  CHECK(cpu::expOfNegative(-87.31f) == 0);
  CHECK(cpu::expOfNegative(-1000) == 0);
  CHECK(cpu::expOfNegative(-kInfinity) == 0);
  CHECK(std::isnan(cpu::expOfNegative(kNan)));
  forEachNumber(87.3, false, [](float x) { CHECK(units(cpu::expOfNegative(x), std::exp(double{x})) <= 2); });
}

TEST_CASE("sixteen exps of negative numbers in float64") {
  std::array<double, 16> x{}, y{};
  for (double first = 708; first > 1e-300; first *= 0.9) {
    for (std::size_t i = 0; i < 16; ++i) x[i] = -first / (1 + static_cast<double>(i));
    cpu::sixteenExpsOfNegative(x.data(), y.data());
    // Without FMA r has the rounding of its product, too.
    for (std::size_t i = 0; i < 16; ++i)
      CHECK(std::abs(y[i] / std::exp(x[i]) - 1) <= 5e-16 + 3e-16 * (1 + std::abs(x[i])));
  }
  x = {0, -708, -709, -1e300, -std::numeric_limits<double>::infinity()};
  cpu::sixteenExpsOfNegative(x.data(), y.data());
  CHECK(y[0] == 1);
  for (std::size_t i = 2; i < 5; ++i) CHECK(y[i] == y[1]);
}

TEST_CASE("sigmoid and tanh, also of very large numbers") {
  CHECK(cpu::sigmoid(0) == 0.5f);
  CHECK(cpu::sigmoid(kInfinity) == 1);
  CHECK(cpu::sigmoid(-kInfinity) == 0);
  CHECK(cpu::tanh(0) == 0);
  CHECK(cpu::tanh(kInfinity) == 1);
  CHECK(cpu::tanh(-kInfinity) == -1);
  CHECK(std::isnan(cpu::sigmoid(kNan)));
  CHECK(std::isnan(cpu::tanh(kNan)));
  forEachNumber(80, true, [](float x) {
    CHECK(units(cpu::sigmoid(x), 1 / (1 + std::exp(-double{x}))) <= 4);
    CHECK(units(cpu::tanh(x), std::tanh(double{x})) <= 4);
  });
}

TEST_CASE("the normal distribution: what is below x and below -x adds up to one") {
  CHECK(cpu::normalAt(0).bell == 1);
  CHECK(cpu::normalAt(0).below == doctest::Approx(0.5).epsilon(2e-7));
  CHECK(cpu::normalAt(kInfinity).below == 1);
  CHECK(cpu::normalAt(-kInfinity).below == 0);
  forEachNumber(12, true, [](float x) {
    const double below = std::erfc(-double{x} / std::sqrt(2.0)) / 2;
    // The bell is two units off and the fit 2e-7; t, q and their products have six roundings. The bell's
    // exponent is rounded to float32: half a unit of x^2 / 2.
    CHECK(std::abs(cpu::normalAt(x).below / below - 1) <=
          2.4e-7 + 2e-7 + 6 * 6e-8 + 6e-8 * double{x} * x / 2);
    CHECK(std::abs(cpu::normalAt(x).below + cpu::normalAt(-x).below - 1) <= 1.2e-7);
  });
}

}  // namespace
}  // namespace muster
