#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// residual += values - base; counts += {elements that reach the threshold, non-finite elements}.
cudaError_t launchAccumulateUpdate(const float* values, const float* base, float* residual, float threshold,
                                   std::int64_t n, unsigned long long* counts, cudaStream_t stream);
/// Subtracts the threshold from each element that reaches it, and writes the bitmap of a ThresholdMessage.
cudaError_t launchEncodeMap(float* residual, float threshold, std::int64_t n, std::uint32_t* words,
                            cudaStream_t stream);
/// out[i] += step * message[i] for i in [begin, end).
cudaError_t launchAddMap(const std::uint32_t* words, float step, std::int64_t begin, std::int64_t end,
                         float* out, cudaStream_t stream);
cudaError_t launchAddList(const std::uint32_t* words, std::int64_t count, float step, std::int64_t begin,
                          std::int64_t end, float* out, cudaStream_t stream);

}  // namespace muster::cuda
