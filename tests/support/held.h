#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "tests/support/at_rest.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

/// Resources that this process holds once its other threads sleep.
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

/// Resident memory also varies by itself, when pages of the allocator and of stacks are first touched. A leak
/// of 4 KiB in each of a thousand wrappers or epochs would exceed this tolerance. AddressSanitizer keeps up
/// to 256 MiB of freed memory (quarantine_size_mb); LeakSanitizer finds leaks. ThreadSanitizer keeps a
/// history of each started thread: 15 MiB for 64 workers.
inline constexpr double kMebibytesOfNoise = 4 + (kAddressSanitizer ? 256 : 0) + (kThreadSanitizer ? 64 : 0);

}  // namespace muster::test
