#pragma once

#include <cmath>
#include <string_view>

#include "muster/core/base/error.h"

// Checks of numbers that a strategy keeps in its blocks: a damaged checkpoint may hold anything.

namespace muster::detail {

/// Above any real count; adding two such numbers does not overflow an int64.
inline constexpr double kMostCounted = 0x1p60;

/// @param block  its name. @param what  follows the number in the message, as "rounds" or "as a weight".
/// @throws InvalidArgument unless `possible`.
inline void requirePossible(bool possible, std::string_view block, double number, std::string_view what) {
  require(possible, "strategy state: \"{}\" has {} {}, which is impossible", block, number, what);
}
/// As above, unless the number is whole, not negative and below 2^60.
inline void requireCount(std::string_view block, double number, std::string_view what) {
  requirePossible(number >= 0 && number < kMostCounted && number == std::floor(number), block, number, what);
}
/// As above, unless the number is not negative and below 2^60.
inline void requireNotNegative(std::string_view block, double number, std::string_view what) {
  requirePossible(number >= 0 && number < kMostCounted, block, number, what);
}

}  // namespace muster::detail
