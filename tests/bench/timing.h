#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

namespace muster::bench {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Processor time of this process, user and system, of all threads.
inline double processorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Processor time of this thread.
inline double threadSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Calls `call` with 0, 1, ... until the time is over, after a quarter of it to warm up.
/// @return calls per second
template <typename Call>
double callsPerSecond(double seconds, const Call& call) {
  const auto repeat = [&](double duration) {
    const auto begin = Clock::now();
    std::int64_t calls = 0;
    do call(calls++);
    while (secondsSince(begin) < duration);
    return static_cast<double>(calls) / secondsSince(begin);
  };
  repeat(seconds / 4);
  return repeat(seconds);
}

/// Median of at least one value: of an even number the mean of the middle two. @param values  in any order
inline double medianOf(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace muster::bench
