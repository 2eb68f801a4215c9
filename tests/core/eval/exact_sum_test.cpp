#include "muster/core/eval/exact_sum.h"

#include "muster/core/base/random.h"
#include "tests/support/test.h"

namespace muster {
namespace {

ExactSum sumOf(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum;
}

TEST_CASE("a sum of doubles is exact, whatever cancels") {
  CHECK(ExactSum().value() == 0);
  CHECK(sumOf({1e300, 1, -1e300}).value() == 1);
  CHECK(sumOf({-1e300, -1, 1e300}).value() == -1);
  CHECK(sumOf({0.1, 0.2, -0.1, -0.2}).value() == 0);
  const double tiny = std::numeric_limits<double>::denorm_min();
  CHECK(sumOf({tiny, 1e308, tiny, -1e308}).value() == 2 * tiny);
  CHECK(sumOf({1, std::ldexp(1.0, -80)}).wide().low == std::ldexp(1.0, -80));
  CHECK(sumOf({-1, std::ldexp(-1.0, -80)}).wide().low == std::ldexp(-1.0, -80));
  CHECK(sumOf(std::vector<double>(1000, 0.1)).value() == 1000 * 0.1);  // exact, though 0.1 is no tenth
}

TEST_CASE("a sum depends neither on the order nor on the parts") {
  const RandomStream random(3, "exact sum");
  std::vector<double> values;
  for (std::uint64_t i = 0; i < 3000; ++i)
    values.push_back((random.uniform(i) - 0.5) * std::pow(2.0, static_cast<double>(i % 200) - 100));
  const ExactSum whole = sumOf(values);
  std::ranges::reverse(values);
  CHECK(sumOf(values) == whole);
  ExactSum parts;
  for (std::size_t begin = 0; begin < values.size(); begin += 700)
    parts.add(sumOf({values.begin() + static_cast<std::ptrdiff_t>(begin),
                     values.begin() + static_cast<std::ptrdiff_t>(std::min(begin + 700, values.size()))}));
  CHECK(parts == whole);
  CHECK(parts.wide().low == whole.wide().low);
  CHECK(ExactSum::fromNumbers(whole.toNumbers()) == whole);
  CHECK(ExactSum::fromNumbers(sumOf({-2.5}).toNumbers()).value() == -2.5);
  auto digits = whole.toNumbers();
  digits[3] = -1;
  CHECK_THROWS_AS(ExactSum::fromNumbers(digits), InvalidArgument);
}

TEST_CASE("wide numbers keep what doubles lose") {
  const WideNumber million{1e6 + 0.125};
  CHECK((million * million).high == (1e6 + 0.125) * (1e6 + 0.125));
  // (10^9 + 1)^2 - 10^9 (10^9 + 2) = 1
  const WideNumber a{1e9 + 1}, b{1e9}, c{1e9 + 2};
  CHECK((a * a - b * c).high == 1);
}

}  // namespace
}  // namespace muster
