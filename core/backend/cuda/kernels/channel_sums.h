#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/channel_shape.h"
#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// Maximum number of blocks if several share the sums of a strip of channels: four for each multiprocessor of
/// an H100, so that all are resident on a data centre GPU.
inline constexpr std::int64_t kMostSumBlocks = 528;
inline constexpr std::int64_t kMostStrip = 16;  // channels: 64 adjacent bytes, the size of a memory access
inline constexpr std::int64_t kMostSumsOfChannel = 2;
/// Required size of `PartialSums::numbers`.
inline constexpr std::int64_t kMostPartialSums = kMostSumBlocks * kMostStrip * kMostSumsOfChannel;
static_assert(kMostSumBlocks / 2 <= kSumCounters);  // one counter for each strip of at least two parts

/// out[c] = the sum over samples and pixels of x, in float64, rounded once.
cudaError_t launchChannelSums(const ChannelShape& shape, const float* x, float* out,
                              const PartialSums& partial, cudaStream_t stream);

}  // namespace muster::cuda
