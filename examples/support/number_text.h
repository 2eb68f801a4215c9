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

/// Short, with a suffix of the thousands: `0.5`, `20k`, `1.5M`.
std::string shortNumber(double value);
/// Whole, in groups of three digits: `60,000`.
std::string groupedNumber(double value);
/// As in `0.431`, `43.1` or `4310`.
std::string secondsDigits(double seconds);
/// `95 %`, `99.25 %`.
std::string percentText(double share);
/// `mean ± deviation`, each multiplied by `factor` and with `decimals`; without the deviation where there is
/// only one number.
std::string spreadText(const Spread& spread, double factor, int decimals);

}  // namespace example
