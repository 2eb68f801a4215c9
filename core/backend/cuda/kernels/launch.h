#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// Kernels are launched by functions that take addresses on the device and a stream, and return what the
// launch said: files of device code see neither tensors nor exceptions, which nvcc would compile for each
// architecture again. The sources beside this folder check, and give them what they need.

namespace muster::cuda {

inline constexpr int kBlockThreads = 256;
/// Blocks of a kernel that walks over its elements: enough to fill every GPU, and the same number on each, so
/// that sums are formed alike on all.
inline constexpr std::int64_t kMostBlocks = 2048;

constexpr int blocksFor(std::int64_t elements, std::int64_t elementsPerBlock = kBlockThreads) {
  const std::int64_t blocks = (elements + elementsPerBlock - 1) / elementsPerBlock;
  return static_cast<int>(blocks < 1 ? 1 : blocks < kMostBlocks ? blocks : kMostBlocks);
}

/// Where blocks leave their parts of sums, and count those that are finished: a context's, for one kernel at
/// a time on its compute stream.
struct PartialSums {
  double* numbers;
  std::uint32_t* counters;  // kSumCounters; zero, and zero again after each kernel
};
inline constexpr int kSumCounters = 512;

}  // namespace muster::cuda
