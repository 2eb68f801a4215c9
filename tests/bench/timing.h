#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace muster::bench {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Median of at least one value. @param values  in any order
inline double medianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace muster::bench
