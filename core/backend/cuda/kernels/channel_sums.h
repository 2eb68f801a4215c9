#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/channel_shape.h"
#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// At most so many blocks share the sums of a strip of channels with others: four for each multiprocessor of
/// an H100, so that all run at once on the GPU of a data centre.
inline constexpr std::int64_t kMostSumBlocks = 528;
inline constexpr std::int64_t kMostStrip =
    16;  // channels; 64 bytes side by side are what memory gives at a time
inline constexpr std::int64_t kMostSumsOfChannel = 2;
/// What they need of `PartialSums`.
inline constexpr std::int64_t kMostPartialSums = kMostSumBlocks * kMostStrip * kMostSumsOfChannel;
static_assert(kMostSumBlocks / 2 <= kSumCounters);  // a counter for each strip of two parts or more

/// out[c] = the sum over samples and pixels of x, in float64, rounded once.
cudaError_t launchChannelSums(const ChannelShape& shape, const float* x, float* out,
                              const PartialSums& partial, cudaStream_t stream);

}  // namespace muster::cuda
