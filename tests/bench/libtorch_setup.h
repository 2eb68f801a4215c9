#pragma once

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

// Shared by the programs that measure libtorch.

/// Sets environment variables that libtorch's libraries read when loaded, unless the caller has set them, and
/// restarts the program: glibc then keeps large blocks instead of returning them to the kernel after each
/// step, and OpenBLAS uses its AVX kernels on CPUs that it does not know yet.
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

/// Pins the calling thread to `count` cores of the process, starting at `first`, modulo the number of cores.
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
