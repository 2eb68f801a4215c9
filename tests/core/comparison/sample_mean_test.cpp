#include "muster/core/comparison/sample_mean.h"

#include "tests/support/test.h"

namespace muster {
namespace {

using doctest::Approx;

TEST_CASE("mean, deviation and Student's interval equal those worked out by hand") {
  const auto spread = sampleMeanOf(std::array{2., 4., 9.});
  CHECK(test::textOf(spread.count, spread.mean) == "3 5");
  CHECK(spread.deviation == Approx(std::sqrt((9 + 1 + 16) / 2.)));
  // The two-sided 5 % points of a table of Student's t: 12.706, 4.303 and 2.776 for 1, 2 and 4 degrees.
  CHECK(sampleMeanOf(std::array{1., 3.}).margin() ==
        Approx(12.706 * std::sqrt(2.) / std::sqrt(2.)).epsilon(1e-4));
  CHECK(spread.margin() == Approx(4.303 * std::sqrt(13.) / std::sqrt(3.)).epsilon(1e-4));
  CHECK(sampleMeanOf(std::array{1., 2., 3., 4., 5.}).margin() ==
        Approx(2.776 * std::sqrt(2.5) / std::sqrt(5.)).epsilon(1e-3));
  const auto one = sampleMeanOf(std::array{7.});
  CHECK(test::textOf(one.mean, one.margin(), one.differsFromZero()) == "7 inf false");
  // Equal numbers, here but for rounding (1 - 25/26 and 25/26 - 24/26), show no spread.
  const auto equal = sampleMeanOf(std::array{1 - 25 / 26., 25 / 26. - 24 / 26., 24 / 26. - 23 / 26.});
  CHECK(test::textOf(equal.hasSpread(), equal.differsFromZero()) == "false false");
  const auto close = sampleMeanOf(std::array{1., 1.01});
  CHECK(test::textOf(close.hasSpread(), close.differsFromZero()) == "true true");
  CHECK(sampleMeanOf({}).count == 0);
  CHECK(meanText({.count = 3, .mean = 0.97123, .deviation = 0.0012}, 100, 2) == "97.12 ± 0.12");
  CHECK(meanText({.count = 1, .mean = 0.97123}, 100, 2) == "97.12");
}

}  // namespace
}  // namespace muster
