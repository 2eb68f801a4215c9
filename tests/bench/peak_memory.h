#pragma once

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

/// The most memory that this program has held at once (VmHWM of /proc/self/status). getrusage would also
/// count what the process held before it became this program.
inline std::int64_t peakMemoryBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  throw std::runtime_error("/proc/self/status has no VmHWM");
}
