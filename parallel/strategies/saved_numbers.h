#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "muster/core/nn/training_state.h"

// The numbers that a strategy keeps in its blocks, and their checks: a damaged checkpoint may hold anything.

namespace muster::detail {

/// How many numbers a struct of doubles is: StrategyBlock::numbers.
template <typename Numbers>
inline constexpr std::int64_t kNumbersOf = sizeof(Numbers) / sizeof(double);

/// The numbers of a block, as such a struct.
template <typename Numbers>
Numbers& numbersOf(const Tensor& block) {
  return *reinterpret_cast<Numbers*>(block.data<double>());
}

/// Whether a number is not negative and below 2^60, above any real count: adding two such numbers does not
/// overflow an int64.
template <typename Number>
bool isCounted(Number number) {
  return number >= 0 && number < static_cast<Number>(std::int64_t{1} << 60);  // false for NaN
}

/// @param block  its name. @param what  follows the number in the message, as "rounds" or "as a weight".
/// @throws SavedStateError unless `possible`.
inline void requirePossible(bool possible, std::string_view block, double number, std::string_view what) {
  requireSaved(possible, "strategy state: \"{}\" has {} {}, which is impossible", block, number, what);
}
/// As above, unless the number is whole, not negative and below 2^60.
inline void requireCount(std::string_view block, double number, std::string_view what) {
  requirePossible(isCounted(number) && number == std::floor(number), block, number, what);
}
/// As above, unless the number is not negative and below 2^60.
inline void requireNotNegative(std::string_view block, double number, std::string_view what) {
  requirePossible(isCounted(number), block, number, what);
}

}  // namespace muster::detail
