#pragma once

#include <string>

namespace muster {

/// A whole number in groups of three digits: `60,000`.
std::string groupedNumber(double value);
/// For example `0.431`, `43.1` or `4310`.
std::string secondsDigits(double seconds);

}  // namespace muster
