#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// Functions that launch kernels take device addresses and a stream, and return the launch's error. Device
// code files use neither tensors nor exceptions, which nvcc would compile again for each architecture; the
// sources in the parent folder check arguments.

namespace muster::cuda {

inline constexpr int kBlockThreads = 256;
/// Number of blocks of a kernel that loops over its elements: enough to fill every GPU, and the same on all,
/// so that sums have the same bits.
inline constexpr std::int64_t kMostBlocks = 2048;

constexpr int blocksFor(std::int64_t elements, std::int64_t elementsPerBlock = kBlockThreads) {
  const std::int64_t blocks = (elements + elementsPerBlock - 1) / elementsPerBlock;
  return static_cast<int>(blocks < 1 ? 1 : blocks < kMostBlocks ? blocks : kMostBlocks);
}

/// Memory for the blocks' partial sums and for counters of finished blocks. Owned by a context, for one
/// kernel at a time on its compute stream.
struct PartialSums {
  double* numbers;
  std::uint32_t* counters;  // kSumCounters; zero before and after each kernel
};
inline constexpr int kSumCounters = 512;

}  // namespace muster::cuda
