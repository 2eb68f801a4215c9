#include "tests/support/rounding.h"

#include "tests/support/arrays.h"
#include "tests/support/test.h"

// The bounds hold, and are not so wide that errors could hide in them.

namespace muster::test {
namespace {

/// Sums in float32, in order; adds the runs' sums in float64.
double sumOf(const std::vector<float>& terms, std::size_t run) {
  double sum = 0;
  for (std::size_t begin = 0; begin < terms.size(); begin += run) {
    float part = 0;
    for (std::size_t i = begin; i < std::min(begin + run, terms.size()); ++i) part += terms[i];
    sum += part;
  }
  return static_cast<float>(sum);
}

/// Pairwise sum in float32.
float sumOfHalves(const float* terms, std::size_t count) {
  if (count == 1) return *terms;
  return sumOfHalves(terms, count / 2) + sumOfHalves(terms + count / 2, count - count / 2);
}

/// The largest errors of sums of random numbers and of rounded products.
struct Largest {
  double inOrder = 0, inRuns = 0, inHalves = 0;
};

Largest largestErrors(std::int64_t count, std::int64_t run, bool products, std::mt19937_64& random) {
  Largest largest;
  for (int repeat = 0; repeat < 50; ++repeat) {
    const Array a = randomArray({count}, random), b = randomArray({count}, random);
    std::vector<float> terms;
    double exact = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      terms.push_back(static_cast<float>(products ? a.at(i) * b.at(i) : a.at(i)));
      exact += products ? a.at(i) * b.at(i) : a.at(i);
    }
    const auto keep = [&](double& error, double sum) { error = std::max(error, std::abs(sum - exact)); };
    keep(largest.inOrder, sumOf(terms, terms.size()));
    keep(largest.inRuns, sumOf(terms, static_cast<std::size_t>(run)));
    keep(largest.inHalves, sumOfHalves(terms.data(), terms.size()));
  }
  return largest;
}

TEST_CASE("errors of sums are below their bound, and not far below the bound of the order of summation") {
  std::mt19937_64 random(freshSeed());
  constexpr std::int64_t kRun = 32;
  for (const std::int64_t count : {1, 2, 3, 31, 33, 500, 2077, 9001})
    for (const bool products : {false, true}) {
      CAPTURE(count);
      CAPTURE(products);
      const double deviation = products ? kProduct : kUniform;
      const double bound = sumError(count, deviation),
                   boundOfRuns = sumError(count, deviation, kRounding, kRun);
      const Largest largest = largestErrors(count, kRun, products, random);
      CHECK(largest.inOrder < bound);
      CHECK(largest.inHalves < bound);
      CHECK(largest.inRuns < boundOfRuns);
      CHECK(boundOfRuns <= bound);
      if (count < 100) continue;
      CHECK(largest.inOrder > bound / 100);
      CHECK(largest.inRuns > boundOfRuns / 100);
    }
}

TEST_CASE("bounds equal those worked out by hand") {
  // A single term has no additions: only its own rounding and that of the result.
  CHECK(sumError(1, 1) == 16 * kRounding);
  CHECK(sumError(4, 1, 0, 1) == 16 * kRounding);
  CHECK(productSumError(1, 3 * kRounding) == doctest::Approx(8.0 / 3 * 8 * kRounding));
  CHECK(roundings(3, 2) == 6 * kRounding);
}

}  // namespace
}  // namespace muster::test
