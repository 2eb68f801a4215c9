#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "muster/core/base/error.h"

// Rules for the fields of data sources and run files. Each throws InvalidArgument with the field's path.

namespace muster::detail {

inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 40;
inline constexpr std::string_view kCountedRange = "[0, 1099511627776]";

inline void requireBetween(std::string_view path, std::int64_t value, std::int64_t least, std::int64_t most) {
  require(value >= least && value <= most, "{} must be between {} and {}, got {}", path, least, most, value);
}

inline void requireNotNegative(std::string_view path, double value) {
  require(std::isfinite(value) && value >= 0, "{} must be finite and not negative, got {}", path, value);
}

}  // namespace muster::detail
