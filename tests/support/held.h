#pragma once

#include <sys/prctl.h>

#include <fstream>
#include <iterator>

#include "tests/support/at_rest.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

/// Before `main` turns huge pages off for this process: the first touched page of a heap or stack could count
/// as 2 MiB.
[[maybe_unused]] inline const int kSmallPages = ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);

/// Memory of this process that no file holds, resident or swapped out. Exact: from Linux 6.2 on,
/// /proc/self/statm may be wrong by 32 pages a core, and more on a machine with more than 16 cores.
inline double anonymousMebibytes() {
  std::ifstream fields("/proc/self/smaps_rollup");
  if (!fields) fields.open("/proc/self/smaps");  // the same by mapping, for kernels without the sums
  double kibibytes = 0;
  for (std::string line; std::getline(fields, line);)
    for (const std::string_view name : {"Anonymous:", "Swap:"})
      if (line.starts_with(name)) kibibytes += std::stod(line.substr(name.size()));
  if (kibibytes == 0) throw std::runtime_error("/proc/self/smaps does not tell the memory");
  return kibibytes / 1024;
}

/// Resources that this process holds once its other threads sleep.
struct Held {
  double mebibytes = 0;  ///< of anonymous memory
  std::ptrdiff_t threads = 0, descriptors = 0;
  long objects = 0;  ///< from operator new

  static Held now() {
    Held held;
    held.objects = liveObjectsAtRest();
    held.threads = awaitRest();
    held.mebibytes = anonymousMebibytes();
    held.descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    return held;
  }
};

/// How much more memory a process may hold after more calls of the same kind. Memory also varies by itself:
/// a stack or the allocator's arena of a thread touches another page later than in the first calls. Measured
/// growth: at most 0.13 MiB in 10,000 calls with 6 threads, and 4 KiB a thread with 64 to 1,024 threads. The
/// tolerance is 1 MiB and 16 KiB a thread: eight and four times as much. Two leaks surely exceed it:
/// - 4 KiB in each of 1,000 calls with 6 threads: 3.9 MiB, of 1.1 allowed;
/// - 4 KiB in each of 18 iterations of 64 workers or more: 72 KiB a worker, of 32 allowed with the 1 MiB.
/// AddressSanitizer keeps up to 256 MiB of freed memory (quarantine_size_mb), as much again in free lists of
/// the sizes that other calls freed before, and an eighth of it as shadow; LeakSanitizer finds leaks.
/// ThreadSanitizer keeps a history of each started thread, 15 MiB for 64 workers, and its shadow pages: 67 MiB
/// were measured. Builds without it find leaks.
inline double mebibytesOfNoise(std::ptrdiff_t threads) {
  return 1 + static_cast<double>(threads) / 64 + (kAddressSanitizer ? 576 : 0) + (kThreadSanitizer ? 128 : 0);
}

}  // namespace muster::test
