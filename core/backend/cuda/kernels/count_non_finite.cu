#include "muster/core/backend/cuda/kernels/count_non_finite.h"

#include <cuda_runtime.h>

namespace muster::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) countKernel(const T* x, std::int64_t n, double* count) {
  std::int64_t found = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < n; i += step)
    found += isfinite(x[i]) ? 0 : 1;
  // Whole numbers are added exactly, so the order does not matter. Hardly any thread gets here.
  if (found) atomicAdd(count, static_cast<double>(found));
}

}  // namespace

cudaError_t launchCountNonFinite(const void* x, bool isDouble, std::int64_t n, double* count,
                                 cudaStream_t stream) {
  if (isDouble)
    countKernel<<<blocksFor(n), kBlockThreads, 0, stream>>>(static_cast<const double*>(x), n, count);
  else
    countKernel<<<blocksFor(n), kBlockThreads, 0, stream>>>(static_cast<const float*>(x), n, count);
  return cudaGetLastError();
}

}  // namespace muster::cuda
