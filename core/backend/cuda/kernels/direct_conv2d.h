#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// A convolution of one group on row-major activations; sizes are those of `Conv2dShape`. All element counts
/// fit 32 bits.
struct DirectCall {
  int samples, inChannels, height, width;
  int outChannels, outHeight, outWidth;
  int kernel[2], stride[2], padding[2], dilation[2];
};

/// Number of products for one output.
constexpr int tapsOf(const DirectCall& c) {
  return c.inChannels * c.kernel[0] * c.kernel[1];
}

/// Shared memory that a block may use by default on every GPU.
inline constexpr int kMostSharedBytes = 48 * 1024;
/// Shared memory per block of `launchDirectForward` and of `launchDirectWeights`.
std::int64_t directForwardBytes(const DirectCall& call);
std::int64_t directWeightsBytes(const DirectCall& call);
/// Scratch floats that `launchDirectWeights` needs for each part of the batch.
std::int64_t directPartFloats(const DirectCall& call);
inline constexpr int kMostDirectTaps = 95;

/// y = conv(x, weight) + bias, then ReLU if `relu`; bias may be null.
cudaError_t launchDirectForward(const DirectCall& call, const float* x, const float* weight,
                                const float* bias, bool relu, float* y, cudaStream_t stream);
/// gradBias may be null. The batch is summed in `parts` parts, whose sums are in scratch.
cudaError_t launchDirectWeights(const DirectCall& call, const float* x, const float* gradY, int parts,
                                float* scratch, float* gradWeight, float* gradBias, cudaStream_t stream);
/// The gradient of the input; not optimised, because first layers do not need it.
cudaError_t launchDirectData(const DirectCall& call, const float* gradY, const float* weight, float* gradX,
                             cudaStream_t stream);

}  // namespace muster::cuda
