#include "muster/core/backend/cuda/kernels/linear_combination.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

__device__ double valueAt(const void* from, bool isDouble, std::int64_t i) {
  return isDouble ? static_cast<const double*>(from)[i]
                  : static_cast<double>(static_cast<const float*>(from)[i]);
}

/// Threads of a warp take the same branches and access adjacent elements.
__global__ void __launch_bounds__(kBlockThreads)
    linearCombinationKernel(const __grid_constant__ TermTable terms, void* out, bool outIsDouble,
                            std::int64_t begin, std::int64_t end) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < end;
       i += step) {
    double sum = terms.count > 0 ? -0.0 : 0.0;  // adding to -0.0 keeps the sign of a zero
#pragma unroll 4
    for (int t = 0; t < terms.count; ++t) sum += terms.factor[t] * valueAt(terms.at[t], terms.isDouble[t], i);
    if (outIsDouble)
      static_cast<double*>(out)[i] = sum;
    else
      static_cast<float*>(out)[i] = static_cast<float>(sum);
  }
}

__device__ double valueAt(RealValues from, std::int64_t i) {
  return valueAt(from.at, from.isDouble, i);
}

__global__ void __launch_bounds__(kBlockThreads)
    innerProductKernel(RealValues a, RealValues b, RealValues origin, std::int64_t begin, std::int64_t end,
                       double* result, PartialSums partial) {
  double sums[1] = {0};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < end;
       i += step) {
    const double from = origin.at ? valueAt(origin, i) : 0.0;
    sums[0] += (valueAt(a, i) - from) * (valueAt(b, i) - from);
  }
  if (sumOverGrid(sums, partial.numbers, partial.counters) && threadIdx.x == 0) *result = sums[0];
}

}  // namespace

cudaError_t launchLinearCombination(const TermTable& terms, void* out, bool outIsDouble, std::int64_t begin,
                                    std::int64_t end, cudaStream_t stream) {
  linearCombinationKernel<<<blocksFor(end - begin), kBlockThreads, 0, stream>>>(terms, out, outIsDouble,
                                                                                begin, end);
  return cudaGetLastError();
}

cudaError_t launchInnerProduct(RealValues a, RealValues b, RealValues origin, std::int64_t begin,
                               std::int64_t end, double* result, const PartialSums& partial,
                               cudaStream_t stream) {
  innerProductKernel<<<blocksFor(end - begin), kBlockThreads, 0, stream>>>(a, b, origin, begin, end, result,
                                                                           partial);
  return cudaGetLastError();
}

}  // namespace muster::cuda
