#include "examples/muster/compare/number_text.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include <boost/math/distributions/students_t.hpp>

namespace comparing {

std::string groupedNumber(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool newGroup = (digits.size() - i) % 3 == 0 && !grouped.empty() && grouped.back() != '-';
    if (newGroup) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string secondsDigits(double seconds) {
  const int decimals = seconds >= 100 ? 0 : seconds >= 10 ? 1 : seconds >= 1 ? 2 : 3;
  return fmt::format("{:.{}f}", seconds, decimals);
}

double Spread::margin() const {
  if (count < 2) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(count);
  const boost::math::students_t distribution(n - 1);
  return boost::math::quantile(distribution, 0.975) * deviation / std::sqrt(n);
}

Spread spreadOf(std::span<const double> values) {
  Spread spread{.count = values.size()};
  if (values.empty()) return spread;
  for (const double value : values) spread.mean += value;
  const auto count = static_cast<double>(values.size());
  spread.mean /= count;
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

std::string spreadText(const Spread& spread, double factor, int decimals) {
  const auto mean = fmt::format("{:.{}f}", spread.mean * factor, decimals);
  if (spread.count < 2) return mean;
  return fmt::format("{} ± {:.{}f}", mean, spread.deviation * factor, decimals);
}

}  // namespace comparing
