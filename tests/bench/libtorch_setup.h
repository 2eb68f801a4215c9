#pragma once

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

// What the programs that measure libtorch have in common.

/// Sets what libtorch's libraries read when they are loaded, unless the caller has, and starts the program
/// anew: glibc keeps large blocks instead of returning them to the kernel after each step, and OpenBLAS,
/// which knows CPUs by name, takes its AVX kernels on those that are newer than itself.
inline void restartTuned(char** argv) {
  if (std::getenv("LIBTORCH_BENCH_RESTARTED") != nullptr) return;
  setenv("LIBTORCH_BENCH_RESTARTED", "1", 1);
  setenv("MALLOC_MMAP_THRESHOLD_", "4294967296", 0);
  setenv("MALLOC_TRIM_THRESHOLD_", "4294967296", 0);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
  else if (__builtin_cpu_supports("avx2"))
    setenv("OPENBLAS_CORETYPE", "Haswell", 0);
#endif
  execv("/proc/self/exe", argv);
  throw std::system_error(errno, std::generic_category(), "cannot restart");
}

/// Pins the calling thread to `count` of the cores that the process may use, from the `first` on, going
/// round.
inline void pinToCores(int first, int count) {
  cpu_set_t allowed, own;
  sched_getaffinity(getpid(), sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  CPU_ZERO(&own);
  for (int i = 0; i < count; ++i) CPU_SET(cores[static_cast<std::size_t>(first + i) % cores.size()], &own);
  sched_setaffinity(0, sizeof own, &own);
}
