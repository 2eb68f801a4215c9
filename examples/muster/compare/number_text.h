#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace comparing {

/// Mean and spread of some numbers.
struct Spread {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< sample standard deviation (n - 1); 0 for fewer than two numbers
  /// Half the width of the mean's 95 % confidence interval, t(n - 1) deviation / sqrt(n); infinity for fewer
  /// than two numbers. Source: Student 1908, "The probable error of a mean".
  double margin() const;
  double low() const { return mean - margin(); }
  double high() const { return mean + margin(); }
  /// Whether the interval leaves out 0.
  bool differsFromZero() const { return low() > 0 || high() < 0; }
};

/// Source: the two-pass formula.
Spread spreadOf(std::span<const double> values);

/// A whole number in groups of three digits: `60,000`.
std::string groupedNumber(double value);
/// For example `0.431`, `43.1` or `4310`.
std::string secondsDigits(double seconds);
/// `mean ± deviation`, each multiplied by `factor` and with `decimals`; without the deviation for a single
/// number.
std::string spreadText(const Spread& spread, double factor, int decimals);

}  // namespace comparing
