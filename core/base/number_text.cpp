#include "muster/core/base/number_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace muster {

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

std::optional<double> parsedNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  return error == std::errc() && std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

std::string secondsDigits(double seconds) {
  const int decimals = seconds >= 100 ? 0 : seconds >= 10 ? 1 : seconds >= 1 ? 2 : 3;
  return fmt::format("{:.{}f}", seconds, decimals);
}

}  // namespace muster
