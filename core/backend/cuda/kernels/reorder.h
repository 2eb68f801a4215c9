#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// An activation [N, C, pixels]; layouts are numbered as in `Layout`.
struct ReorderShape {
  std::int64_t samples, channels, pixels;
  int from, to;
  std::int64_t storage;  // elements of the target, padding included
};
/// T is float, or std::uint8_t, which becomes value / 255.
template <typename T>
cudaError_t launchReorder(const T* x, float* y, const ReorderShape& shape, cudaStream_t stream);
/// Reorder between row-major and channels-last, with target or source in bfloat16.
cudaError_t launchReorderToBFloat16(const float* x, void* y, const ReorderShape& shape, cudaStream_t stream);
cudaError_t launchReorderFromBFloat16(const void* x, float* y, const ReorderShape& shape,
                                      cudaStream_t stream);
/// Converts bytes to value / 255.
cudaError_t launchLoadBytes(const std::uint8_t* x, float* y, std::int64_t n, cudaStream_t stream);

/// Converts to bfloat16, rounding to nearest even, and back.
cudaError_t launchToBFloat16(const float* x, void* y, std::int64_t n, cudaStream_t stream);
cudaError_t launchFromBFloat16(const void* x, float* y, std::int64_t n, cudaStream_t stream);

}  // namespace muster::cuda
