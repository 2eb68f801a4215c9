#include "muster/core/backend/cuda/kernels/threshold.h"

#include <cuda_runtime.h>

namespace muster::cuda {
namespace {

constexpr std::int64_t kElementsPerWord = 16;

__global__ void __launch_bounds__(kBlockThreads)
    accumulateKernel(const float* values, const float* base, float* residual, float threshold, std::int64_t n,
                     unsigned long long* counts) {
  unsigned reaching = 0, notFinite = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < n;
       i += step) {
    const float value = residual[i] + (values[i] - base[i]);
    residual[i] = value;
    reaching += fabsf(value) >= threshold ? 1 : 0;
    notFinite += isfinite(value) ? 0 : 1;
  }
  // Integer sums do not depend on the order.
  if (reaching) atomicAdd(counts, static_cast<unsigned long long>(reaching));
  if (notFinite) atomicAdd(counts + 1, static_cast<unsigned long long>(notFinite));
}

/// One thread per word.
__global__ void __launch_bounds__(kBlockThreads)
    encodeKernel(float* residual, float threshold, std::int64_t n, std::uint32_t* words) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t word = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
       word * kElementsPerWord < n; word += step) {
    std::uint32_t bits = 0;
    for (std::int64_t k = 0; k < kElementsPerWord && word * kElementsPerWord + k < n; ++k) {
      float& value = residual[word * kElementsPerWord + k];
      if (!(fabsf(value) >= threshold)) continue;
      const bool negative = value < 0;
      value -= negative ? -threshold : threshold;
      bits |= (negative ? 2u : 1u) << (2 * k);
    }
    words[word] = bits;
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    addMapKernel(const std::uint32_t* words, float amount, std::int64_t begin, std::int64_t end, float* out) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < end;
       i += step) {
    const std::uint32_t sign = words[i / kElementsPerWord] >> (2 * (i % kElementsPerWord)) & 3u;
    if (sign != 0) out[i] += sign == 1 ? amount : -amount;
  }
}

/// Needs no atomics: the list has each element once.
__global__ void __launch_bounds__(kBlockThreads)
    addListKernel(const std::uint32_t* words, std::int64_t count, float amount, std::int64_t begin,
                  std::int64_t end, float* out) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; k < count;
       k += step) {
    const std::int64_t i = words[k] / 2;
    if (i >= begin && i < end) out[i] += words[k] % 2 == 1 ? -amount : amount;
  }
}

}  // namespace

cudaError_t launchAccumulateUpdate(const float* values, const float* base, float* residual, float threshold,
                                   std::int64_t n, unsigned long long* counts, cudaStream_t stream) {
  accumulateKernel<<<blocksFor(n), kBlockThreads, 0, stream>>>(values, base, residual, threshold, n, counts);
  return cudaGetLastError();
}

cudaError_t launchEncodeMap(float* residual, float threshold, std::int64_t n, std::uint32_t* words,
                            cudaStream_t stream) {
  encodeKernel<<<blocksFor(n, kBlockThreads * kElementsPerWord), kBlockThreads, 0, stream>>>(
      residual, threshold, n, words);
  return cudaGetLastError();
}

cudaError_t launchAddMap(const std::uint32_t* words, float amount, std::int64_t begin, std::int64_t end,
                         float* out, cudaStream_t stream) {
  addMapKernel<<<blocksFor(end - begin), kBlockThreads, 0, stream>>>(words, amount, begin, end, out);
  return cudaGetLastError();
}

cudaError_t launchAddList(const std::uint32_t* words, std::int64_t count, float amount, std::int64_t begin,
                          std::int64_t end, float* out, cudaStream_t stream) {
  addListKernel<<<blocksFor(count), kBlockThreads, 0, stream>>>(words, count, amount, begin, end, out);
  return cudaGetLastError();
}

}  // namespace muster::cuda
