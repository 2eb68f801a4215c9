#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace muster::detail {

/// A score to read that equal labels do not have: a coefficient of determination, a correlation, an area
/// under a curve.
inline std::string scoreText(double score) {
  return std::isnan(score) ? "undefined" : fmt::format("{:.4f}", score);
}

}  // namespace muster::detail
