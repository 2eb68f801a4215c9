#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace example {

/// Mean and spread of some numbers.
struct Spread {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< sample standard deviation (n - 1); 0 for fewer than two numbers
};

/// Source: the two-pass formula.
Spread spreadOf(std::span<const double> values);

/// A whole number in groups of three digits: `60,000`.
std::string groupedNumber(double value);
/// For example `0.431`, `43.1` or `4310`.
std::string secondsDigits(double seconds);
/// For example `95 %` or `99.25 %`.
std::string percentText(double share);
/// `mean ± deviation`, each multiplied by `factor` and with `decimals`; without the deviation for a single
/// number.
std::string spreadText(const Spread& spread, double factor, int decimals);

}  // namespace example
