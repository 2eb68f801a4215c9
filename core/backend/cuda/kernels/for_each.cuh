#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// Calls f(i) for each i below n, over the whole grid.
template <typename F>
__global__ void __launch_bounds__(kBlockThreads) forEachKernel(std::int64_t n, F f) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < n; i += step)
    f(i);
}

template <typename F>
cudaError_t forEach(std::int64_t n, cudaStream_t stream, F f) {
  if (n <= 0) return cudaSuccess;
  forEachKernel<<<blocksFor(n), kBlockThreads, 0, stream>>>(n, f);
  return cudaGetLastError();
}

/// Calls f(row, lane) for each row in all threads of one warp.
template <typename F>
__global__ void __launch_bounds__(kBlockThreads) forEachRowKernel(std::int64_t rows, F f) {
  constexpr int kWarps = kBlockThreads / 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kWarps;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; row < rows;
       row += step)
    f(row, static_cast<int>(threadIdx.x % 32));
}

template <typename F>
cudaError_t forEachRow(std::int64_t rows, cudaStream_t stream, F f) {
  if (rows <= 0) return cudaSuccess;
  forEachRowKernel<<<blocksFor(rows, kBlockThreads / 32), kBlockThreads, 0, stream>>>(rows, f);
  return cudaGetLastError();
}

__device__ inline float sigmoid(float x) {
  const float e = expf(x < 0.0f ? x : -x);  // never overflows
  return x < 0.0f ? e / (1.0f + e) : 1.0f / (1.0f + e);
}

}  // namespace muster::cuda
