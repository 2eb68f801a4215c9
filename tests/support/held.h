#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "tests/support/at_rest.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

/// What this process holds of the machine, once its other threads sleep.
struct Held {
  double mebibytes = 0;  ///< resident
  std::ptrdiff_t threads = 0, descriptors = 0;
  long objects = 0;  ///< from operator new

  static Held now() {
    Held held;
    held.objects = liveObjectsAtRest();
    held.threads = awaitRest();
    long pages = 0, resident = 0;
    if (std::sscanf(readFile("/proc/self/statm").c_str(), "%ld %ld", &pages, &resident) == 2)
      held.mebibytes =
          static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
    held.descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    return held;
  }
};

/// Resident memory also moves by itself: pages of the allocator and of stacks that are touched later. What a
/// thousand wrappers or epochs would lose, 4 KiB each, is more than this.
#if defined(__SANITIZE_ADDRESS__)
/// AddressSanitizer keeps up to 256 MiB that were freed (quarantine_size_mb); LeakSanitizer finds what is lost.
inline constexpr double kMebibytesOfNoise = 4 + 256;
#else
inline constexpr double kMebibytesOfNoise = 4;
#endif

}  // namespace muster::test
