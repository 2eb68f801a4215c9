#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace muster::detail {

/// Integers of the size of T. Without the sign bit, the bits of numbers are ordered by magnitude; infinity
/// and NaN come last. Signed, because all instruction sets compare signed integers.
template <std::floating_point T>
using MagnitudeBits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

template <std::floating_point T>
[[gnu::always_inline]] inline MagnitudeBits<T> magnitudeBits(T x) {
  return std::bit_cast<MagnitudeBits<T>>(x) & std::numeric_limits<MagnitudeBits<T>>::max();
}

/// Whether numbers up to this magnitude are finite.
template <std::floating_point T>
bool isFinite(MagnitudeBits<T> largest) {
  return largest < std::bit_cast<MagnitudeBits<T>>(std::numeric_limits<T>::infinity());
}

/// The largest magnitude among n numbers.
template <std::floating_point T>
[[gnu::always_inline]] inline MagnitudeBits<T> largestMagnitude(const T* __restrict x, std::int64_t n) {
  MagnitudeBits<T> largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, magnitudeBits(x[i]));
  return largest;
}

}  // namespace muster::detail
