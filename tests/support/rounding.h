#pragma once

#include "tests/support/standard.h"

namespace muster::test {

// Note [Tolerances]
// A test with random inputs must pass with all of them, so its tolerances bound |computed - exact|
// (`maxDifference`) by a bound derived from the operation. There are two bounds. In both, u = 2^-24 is the
// largest relative error of one rounding to float32.
//
// `roundings` bounds a few successive roundings: each has a relative error of at most u, and to first order
// the errors add up (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 2.2 and lemma
// 3.1).
//
// `sumError` bounds the sum of n random terms of mean 0 and deviation s. The worst case, n u sum |term|
// (Higham, section 4.2), is a thousand times the typical error for n = 10,000, and would hide bugs. This
// bound holds except with negligible probability. The additions' error is the sum of d_k S_k over the partial
// sums S_k; the d_k are taken as independent and uniform within [-u, u] (Higham and Mary, "A new approach to
// probabilistic rounding error analysis", 2019, model 2.1). The S_k are a random walk, and the sum of the
// squares of one has exponential moments (Cameron and Martin). With E = u s n / sqrt 3,
//
//   mean of exp(a error / E) <= cos(a)^(-1/2) for a < pi/2; with a = pi/2 - 1/(2 t), by Markov's inequality,
//   P(|error| > t E) <= 2 sqrt(2 e t) exp(-pi t / 2), which is 5e-13 for t = 20.
//
// In another order the partial sums have fewer terms, so that the bound holds for all orders. If each term
// has a relative error e before it is added, these errors add up to at most 8 e s sqrt n, except with
// probability 2 exp(-8^2 / 2) = 3e-14.

/// The largest relative error of rounding to float32.
inline constexpr double kRounding = 0x1p-24;

/// Deviations of random terms: uniform in [-1, 1), and the product of two such.
inline constexpr double kUniform = 0.57735026918962576;
inline constexpr double kProduct = 1.0 / 3;

/// Bounds `count` roundings of numbers up to `magnitude`.
constexpr double roundings(double count, double magnitude = 1) {
  return count * kRounding * magnitude;
}

/// Bounds the error of a sum of independent random terms of mean 0, added in any order and rounded to
/// float32.
///
/// @param deviation  standard deviation of a term.
/// @param termError  relative error of each term before it is added.
/// @param run  number of terms summed in float32; the sums of these runs are added in float64. 0: all.
inline double sumError(std::int64_t terms, double deviation, double termError = kRounding,
                       std::int64_t run = 0) {
  const auto all = static_cast<double>(terms);
  const double inRun = run == 0 ? all : static_cast<double>(std::min(run, terms));
  const auto additions = [](double n) { return n > 1 ? (n - 1) * (n + 2) : 0; };  // 2 sum k, k = 2..n
  const double runs = std::floor(all / inRun);
  const double squares = runs * additions(inRun) + additions(all - runs * inRun);
  return deviation * (20 / std::sqrt(3.0) * kRounding * std::sqrt(squares) +
                      8 * (termError + kRounding) * std::sqrt(all));
}

/// `sumError` of products of two uniform factors.
///
/// @param productError  `Where::kProductError`. A device may truncate factors instead of rounding them, which
///         doubles it.
inline double productSumError(std::int64_t terms, double productError = 0) {
  return sumError(terms, kProduct, kRounding + 2 * productError);
}

}  // namespace muster::test
