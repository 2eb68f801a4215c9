#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// A whole number in groups of three digits: `60,000`.
std::string groupedNumber(double value);
/// The number that a whole text is, as C and Python write it; NaN if it is not finite or does not fit a
/// double, as "nan" or "1e400"; nothing for another text.
std::optional<double> parsedNumber(std::string_view text);
/// For example `0.431`, `43.1` or `4310`.
std::string secondsDigits(double seconds);

}  // namespace muster
