#pragma once

#include <sched.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
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

/// Unlike `contiguous`, `to` also changes the strides of a tensor of one channel, by which kernels are
/// chosen.
inline torch::Tensor channelsLast(const torch::Tensor& tensor) {
  return tensor.to(tensor.options(), false, false, torch::MemoryFormat::ChannelsLast);
}

/// Random images and labels that stay in memory, handed out batch after batch.
class ResidentData {
 public:
  ResidentData(std::int64_t batch, std::int64_t batches, bool asChannelsLast)
      : batch_(batch),
        batches_(batches),
        images_(torch::rand({batches * batch, 1, 28, 28})),
        labels_(torch::randint(10, {batches * batch}, torch::kLong)) {
    if (asChannelsLast) images_ = channelsLast(images_);
  }
  torch::Tensor images(std::int64_t step) const {
    return images_.narrow(0, step % batches_ * batch_, batch_);
  }
  torch::Tensor labels(std::int64_t step) const {
    return labels_.narrow(0, step % batches_ * batch_, batch_);
  }

 private:
  std::int64_t batch_, batches_;
  torch::Tensor images_, labels_;
};
