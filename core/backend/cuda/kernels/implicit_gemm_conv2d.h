#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/direct_conv2d.h"
#include "muster/core/backend/cuda/kernels/launch.h"

// Convolutions of small images as products of matrices on tensor cores (implicit GEMM): factors are rounded
// to TF32, sums are float32. A sample's image is in a block's shared memory, and the matrix of its patches
// is never stored: a table has where each of its columns begins. Needs compute capability 8.0.

namespace muster::cuda {

/// Shared memory per block of the three kernels; a GPU may offer less.
std::int64_t implicitForwardBytes(const DirectCall& call);
std::int64_t implicitDataBytes(const DirectCall& call);
std::int64_t implicitWeightsBytes(const DirectCall& call);
/// Floats of memory that `launchImplicitWeights` needs for its partial sums.
std::int64_t implicitPartFloats(const DirectCall& call);
/// Whether the sizes suit the kernels, apart from memory: at most 64 output channels, few enough tiles for a
/// block, padding within the kernel's reach, and a stride of 1.
bool implicitGemmSuits(const DirectCall& call);

/// y = conv(x, weight) + bias, then ReLU if `relu`; bias may be null.
cudaError_t launchImplicitForward(const DirectCall& call, const float* x, const float* weight,
                                  const float* bias, bool relu, float* y, cudaStream_t stream);
cudaError_t launchImplicitData(const DirectCall& call, const float* gradY, const float* weight, float* gradX,
                               cudaStream_t stream);
/// @param parts  memory of `implicitPartFloats` floats.
cudaError_t launchImplicitWeights(const DirectCall& call, const float* x, const float* gradY, float* parts,
                                  float* gradWeight, cudaStream_t stream);

}  // namespace muster::cuda
