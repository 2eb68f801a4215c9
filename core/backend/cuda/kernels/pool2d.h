#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// Planes [height, width, lanes]; all lanes are pooled alike, as on the CPU.
struct PoolCall {
  std::int64_t planes, height, width, outHeight, outWidth, lanes;
  std::int64_t kernel[2], stride[2], padding[2];
};

/// Index is std::uint8_t or std::int32_t: for each output the kernel position of the largest pixel.
template <typename Index>
cudaError_t launchMaxPool(const PoolCall& call, const float* x, float* y, Index* winners,
                          cudaStream_t stream);
/// Sums for each input the gradients of the windows in which it was the largest, in order.
template <typename Index>
cudaError_t launchMaxPoolBackward(const PoolCall& call, const float* gradY, const Index* winners,
                                  float* gradX, cudaStream_t stream);
cudaError_t launchAveragePool(const PoolCall& call, const float* x, float* y, cudaStream_t stream);
cudaError_t launchAveragePoolBackward(const PoolCall& call, const float* gradY, float* gradX,
                                      cudaStream_t stream);

}  // namespace muster::cuda
