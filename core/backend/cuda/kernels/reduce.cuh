#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

// Sums in a fixed order: a tree over a block's threads; then the block that finishes last adds the blocks'
// sums in order. All blocks have kBlockThreads threads.

namespace muster::cuda {

/// The sum over a warp; all its threads get the result.
template <typename T>
__device__ T warpSum(T value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}
template <typename T>
__device__ T warpMax(T value) {  // for float, fmax is the float overload
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmax(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

/// Sums each of `parts` numbers over the block's threads that are equal modulo `width`, a power of two up to
/// `mostWidth`. Thread t < `width` gets the result of its class.
template <unsigned mostWidth = 1, int parts>
__device__ void sumOverBlock(double (&sums)[parts], unsigned width = 1) {
  static_assert(mostWidth <= 32);
  __shared__ double warpSums[kBlockThreads / 32][parts][mostWidth];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (unsigned offset = 16; offset > 0; offset /= 2)
    if (offset >= width)
#pragma unroll
      for (int part = 0; part < parts; ++part)
        sums[part] += __shfl_down_sync(0xffffffffu, sums[part], offset);
  __syncthreads();  // threads may still read `warpSums` for the previous sum
  if (lane < width)
    for (int part = 0; part < parts; ++part) warpSums[warp][part][lane] = sums[part];
  __syncthreads();
  if (threadIdx.x < width)
    for (int part = 0; part < parts; ++part) {
      sums[part] = warpSums[0][part][lane];
      for (unsigned w = 1; w < kBlockThreads / 32; ++w) sums[part] += warpSums[w][part][lane];
    }
}

/// Whether this block is the last of `blocks` blocks to reach this counter; the same in all its threads.
/// If true, earlier writes of the other blocks are visible. Resets the counter to 0.
__device__ inline bool isLastBlock(std::uint32_t* counter, unsigned blocks) {
  __shared__ bool last;
  __syncthreads();  // all threads of the block have written
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(counter, blocks - 1) == blocks - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

/// Sums over all threads of the grid. Returns true in one block, whose thread 0 then has the totals in
/// `sums`. `scratch` has gridDim.x * parts numbers.
template <int parts>
__device__ bool sumOverGrid(double (&sums)[parts], double* scratch, std::uint32_t* counter) {
  sumOverBlock(sums);
  if (threadIdx.x == 0)
    for (int part = 0; part < parts; ++part) scratch[blockIdx.x * parts + part] = sums[part];
  if (!isLastBlock(counter, gridDim.x)) return false;
  for (int part = 0; part < parts; ++part) sums[part] = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kBlockThreads)
    for (int part = 0; part < parts; ++part) sums[part] += __ldcg(scratch + block * parts + part);
  sumOverBlock(sums);
  return true;
}

}  // namespace muster::cuda
