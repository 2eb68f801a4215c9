#pragma once

#include <cstdint>

namespace muster::cpu {

// Sums and maxima in sixteen lanes for any vector width, so that every instruction set uses the same order.

inline constexpr int kLanes = 16;

/// Calls f(lane, i) for i = 0 .. n - 1 in order, in sixteen parallel lanes.
template <typename F>
[[gnu::always_inline]] inline void overLanes(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) f(lane, i + lane);
  for (int lane = 0; i < n; ++i, ++lane) f(lane, i);
}

/// The largest of n values, and at least `least`. NaN does not count.
template <typename Number, typename F>
[[gnu::always_inline]] inline Number largestOf(std::int64_t n, Number least, F value) {
  // The compiler compares whole vectors only if it does not unroll these loops.
  Number lanes[kLanes];
  const auto count = [&](int lane, Number v) __attribute__((always_inline)) {
    lanes[lane] = v > lanes[lane] ? v : lanes[lane];
  };
  for (Number& lane : lanes) lane = least;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; ++lane) count(lane, value(i + lane));
  for (int lane = 0; i < n; ++i, ++lane) count(lane, value(i));
#pragma GCC unroll 1
  for (int lane = 0; lane < kLanes / 2; ++lane) count(lane, lanes[lane + kLanes / 2]);
#pragma GCC unroll 1
  for (int lane = 0; lane < kLanes / 4; ++lane) count(lane, lanes[lane + kLanes / 4]);
  for (int lane = 1; lane < kLanes / 4; ++lane) count(0, lanes[lane]);
  return lanes[0];
}

/// The sum of n values.
template <typename Number, typename F>
[[gnu::always_inline]] inline Number sumOf(std::int64_t n, F value) {
  Number lanes[kLanes];
#pragma GCC unroll 16
  for (Number& lane : lanes) lane = 0;  // GCC takes longer to zero a whole array
  overLanes(
      n, [&](int lane, std::int64_t i) __attribute__((always_inline)) { lanes[lane] += value(i); });
  Number sum = 0;
  for (const Number lane : lanes) sum += lane;
  return sum;
}

}  // namespace muster::cpu
