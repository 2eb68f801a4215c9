#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// A convolution of one group, activations row-major; the sizes are those of `Conv2dShape`. All numbers of
/// elements fit 32 bits.
struct DirectCall {
  int samples, inChannels, height, width;
  int outChannels, outHeight, outWidth;
  int kernel[2], stride[2], padding[2], dilation[2];
};

/// Products for one output.
constexpr int tapsOf(const DirectCall& c) {
  return c.inChannels * c.kernel[0] * c.kernel[1];
}

/// What a GPU gives every block without being asked for more.
inline constexpr int kMostSharedBytes = 48 * 1024;
/// Shared memory of a block of `launchDirectForward` and of `launchDirectWeights`.
std::int64_t directForwardBytes(const DirectCall& call);
std::int64_t directWeightsBytes(const DirectCall& call);
/// Numbers of scratch that `launchDirectWeights` needs for each part of the batch.
std::int64_t directPartFloats(const DirectCall& call);
inline constexpr int kMostDirectTaps = 95;

/// y = conv(x, weight) + bias, then ReLU where asked for; bias may be null.
cudaError_t launchDirectForward(const DirectCall& call, const float* x, const float* weight,
                                const float* bias, bool relu, float* y, cudaStream_t stream);
/// gradBias may be null. The batch is summed in `parts` parts, of which scratch has the sums for a while.
cudaError_t launchDirectWeights(const DirectCall& call, const float* x, const float* gradY, int parts,
                                float* scratch, float* gradWeight, float* gradBias, cudaStream_t stream);
/// The gradient by the input: plain, as first layers are not asked for it.
cudaError_t launchDirectData(const DirectCall& call, const float* gradY, const float* weight, float* gradX,
                             cudaStream_t stream);

}  // namespace muster::cuda
