#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace muster {

/// Mean and spread of some numbers, such as the scores of several seeds.
struct SampleMean {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< sample standard deviation (n - 1); 0 for fewer than two numbers
  /// Half the width of the mean's 95 % confidence interval, t(n - 1) deviation / sqrt(n); infinity for fewer
  /// than two numbers. Source: Student 1908, "The probable error of a mean".
  double margin() const;
  double low() const { return mean - margin(); }
  double high() const { return mean + margin(); }
  /// Whether the numbers differ from each other, beyond rounding. If they do not, their spread is not known,
  /// and an interval of width 0 would say nothing about further numbers.
  bool hasSpread() const;
  /// Whether the numbers have a spread and the interval leaves out 0.
  bool differsFromZero() const { return hasSpread() && (low() > 0 || high() < 0); }
};

/// Source: the two-pass formula.
SampleMean sampleMeanOf(std::span<const double> values);

/// `mean ± deviation`, each multiplied by `factor` and with `decimals`; without the deviation for a single
/// number.
std::string meanText(const SampleMean& sample, double factor, int decimals);

}  // namespace muster
