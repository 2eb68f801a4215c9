#include "muster/core/base/random.h"

#include "tests/support/test.h"

namespace muster {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST_CASE("Philox4x32-10 gives the known answers") {
  // Source: kat_vectors of Random123, by the authors of the paper.
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  constexpr std::uint32_t f = 0xffffffffu;
  CHECK(philox({f, f, f, f}, {f, f}) == Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  CHECK(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}) ==
        Words{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("a stream's numbers equal those of random_golden.py") {
  CHECK(RandomStream(123, "dropout", 2).words(5) ==
        Words{0x415a3feeu, 0x28636afau, 0x3c87bf3bu, 0x17c5baf0u});
  CHECK(RandomStream(~std::uint64_t{0}, "init", (std::int64_t{1} << 33) + 1).words((1ull << 40) + 3) ==
        Words{0x7e1c94d8u, 0x890c1c0cu, 0x0bbdfa79u, 0x48c078c2u});
  const RandomStream shuffle(7, "shuffle");
  const std::array<std::uint64_t, 8> below{5, 519, 885, 860, 385, 873, 235, 280};
  for (std::uint64_t i = 0; i < below.size(); ++i) CHECK(shuffle.below(i, 1000) == below[i]);
}

TEST_CASE("seed, name, epoch and index each change the numbers") {
  const auto base = RandomStream(1, "a", 0).words(0);
  CHECK(RandomStream(1, "a", 0).words(0) == base);
  CHECK(RandomStream(2, "a", 0).words(0) != base);
  CHECK(RandomStream(1, "b", 0).words(0) != base);
  CHECK(RandomStream(1, "a", 1).words(0) != base);
  CHECK(RandomStream(1, "a", 0).words(1) != base);
}

TEST_CASE("uniform numbers are between 0 and 1, with the mean and variance of a uniform distribution") {
  const RandomStream stream(3, "test");
  constexpr int n = 100000;
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double u = stream.uniform(i);
    REQUIRE((u >= 0.0 && u < 1.0));
    sum += u;
    squares += u * u;
  }
  const double mean = sum / n;
  CHECK(std::abs(mean - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(std::abs(squares / n - mean * mean - 1.0 / 12) < 0.002);
}

TEST_CASE("normal numbers have the moments of a normal distribution") {
  const RandomStream stream(4, "test");
  constexpr int n = 100000;
  std::array<double, 5> moments{};
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = stream.normal(i);
    for (std::size_t k = 1; k < moments.size(); ++k) moments[k] += std::pow(x, static_cast<double>(k)) / n;
  }
  // Five standard deviations of the k-th sample moment: sqrt(E x^2k - (E x^k)^2) / sqrt(n).
  const double unit = 5 / std::sqrt(double{n});
  CHECK(std::abs(moments[1]) < unit);
  CHECK(std::abs(moments[2] - 1) < unit * std::sqrt(2.0));
  CHECK(std::abs(moments[3]) < unit * std::sqrt(15.0));
  CHECK(std::abs(moments[4] - 3) < unit * std::sqrt(96.0));
}

TEST_CASE("below() is uniform over its range") {
  const RandomStream stream(5, "test");
  constexpr std::uint64_t bound = 10, n = 50000;
  std::array<double, bound> counts{};
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto value = stream.below(i, bound);
    REQUIRE(value < bound);
    ++counts[value];
  }
  double chiSquare = 0;
  for (const double count : counts) chiSquare += (count - 5000) * (count - 5000) / 5000;
  CHECK(chiSquare < 33.7);  // 9 degrees of freedom: exceeded once in 10,000
  CHECK(stream.below(0, 1) == 0);
}

}  // namespace
}  // namespace muster
