#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace muster::bench {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Median of at least one value: of an even number the mean of the middle two. @param values  in any order
inline double medianOf(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace muster::bench
