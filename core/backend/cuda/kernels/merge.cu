#include "muster/core/backend/cuda/kernels/merge.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

int mergeBlocks(std::int64_t elements) {
  const std::int64_t blocks = (elements + 4 * kBlockThreads - 1) / (4 * kBlockThreads);
  return static_cast<int>(blocks < 1 ? 1 : blocks < kMergeBlocks ? blocks : kMergeBlocks);
}

/// The first product is stored, not added to 0: the mean of negative zeros is a negative zero. Replicas
/// without a share are passed over, whatever they hold.
template <int W, typename T>
__device__ double meanOf(const ReplicaTable<T>& replicas, const T (&values)[W]) {
  double mean = -0.0;
#pragma unroll
  for (int w = 0; w < W; ++w)
    if (replicas.share[w] != 0) mean += replicas.share[w] * values[w];
  return mean;
}

/// W replicas, whose elements stay in registers between the mean and the distances: memory sees each once.
template <int W, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    meanKernel(const __grid_constant__ ReplicaTable<T> replicas, T* shadow, std::int64_t begin,
               std::int64_t end, bool write, double* distances, double* scratch, std::uint32_t* counter) {
  double sums[W + 1] = {};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < end;
       i += step) {
    T values[W];
#pragma unroll
    for (int w = 0; w < W; ++w) values[w] = replicas.at[w][i];
    const double mean = meanOf<W>(replicas, values);
    const T rounded = static_cast<T>(mean);
    if (write) {
#pragma unroll
      for (int w = 0; w < W; ++w) replicas.at[w][i] = rounded;
      if (shadow) shadow[i] = rounded;
    }
    if (!distances) continue;
#pragma unroll
    for (int w = 0; w < W; ++w) sums[w] += (values[w] - mean) * (values[w] - mean);
    sums[W] += mean * mean;
  }
  if (!distances || !sumOverGrid(sums, scratch, counter) || threadIdx.x != 0) return;
  for (int w = 0; w <= W; ++w) distances[w] = sums[w];
}

/// Any number of replicas, read again from the cache for the distances, one replica's at a time.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    meanOfManyKernel(const __grid_constant__ ReplicaTable<T> replicas, T* shadow, std::int64_t begin,
                     std::int64_t end) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < end;
       i += step) {
    double mean = -0.0;
    for (int w = 0; w < replicas.count; ++w)
      if (replicas.share[w] != 0) mean += replicas.share[w] * replicas.at[w][i];
    const T rounded = static_cast<T>(mean);
    for (int w = 0; w < replicas.count; ++w) replicas.at[w][i] = rounded;
    if (shadow) shadow[i] = rounded;
  }
}

/// distances[which] of any number of replicas; the mean's norm for which = count.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    distanceKernel(const __grid_constant__ ReplicaTable<T> replicas, int which, std::int64_t begin,
                   std::int64_t end, double* distance, double* scratch, std::uint32_t* counter) {
  double sums[1] = {0};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < end;
       i += step) {
    double mean = -0.0;
    for (int w = 0; w < replicas.count; ++w)
      if (replicas.share[w] != 0) mean += replicas.share[w] * replicas.at[w][i];
    const double from = which < replicas.count ? static_cast<double>(replicas.at[which][i]) : 0.0;
    sums[0] += (from - mean) * (from - mean);
  }
  if (sumOverGrid(sums, scratch, counter) && threadIdx.x == 0) *distance = sums[0];
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    momentsKernel(const __grid_constant__ ReplicaTable<T> replicas, T* shadow, std::int64_t begin,
                  std::int64_t end, std::int64_t half, int originReplica) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < end;
       i += step) {
    const double origin = replicas.at[originReplica][i];
    double shift = 0, squares = 0;
    for (int w = 0; w < replicas.count; ++w) {
      if (replicas.share[w] == 0) continue;
      const double own = replicas.at[w][i] - origin;
      shift += replicas.share[w] * own;
      squares += replicas.share[w] * (replicas.at[w][half + i] + own * own);
    }
    const T mean = static_cast<T>(origin + shift);
    const double deviation = squares - shift * shift;
    const T variance = static_cast<T>(deviation < 0 ? 0.0 : deviation);  // lets NaN through
    for (int w = 0; w < replicas.count; ++w) {
      replicas.at[w][i] = mean;
      replicas.at[w][half + i] = variance;
    }
    if (shadow) {
      shadow[i] = mean;
      shadow[half + i] = variance;
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    addMeanKernel(const __grid_constant__ ReplicaTable<T> vectors, T* out, std::int64_t begin,
                  std::int64_t end, double* result, double* scratch, std::uint32_t* counter) {
  double sums[2] = {0, 0};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < end;
       i += step) {
    double mean = 0;
    for (int v = 0; v < vectors.count; ++v)
      if (vectors.share[v] != 0) mean += vectors.share[v] * vectors.at[v][i];
    const double before = out[i];
    sums[0] += mean * mean;
    sums[1] += before * before;
    out[i] = static_cast<T>(before + mean);
  }
  if (!sumOverGrid(sums, scratch, counter) || threadIdx.x != 0) return;
  result[0] = sums[0];
  result[1] = sums[1];
}

}  // namespace

template <typename T>
cudaError_t launchMean(const ReplicaTable<T>& replicas, T* shadow, std::int64_t begin, std::int64_t end,
                       bool write, double* distances, double* scratch, std::uint32_t* counter,
                       cudaStream_t stream) {
  const int blocks = mergeBlocks(end - begin);
  const auto launch = [&](auto kernel) {
    kernel<<<blocks, kBlockThreads, 0, stream>>>(replicas, shadow, begin, end, write, distances, scratch,
                                                 counter);
    return cudaGetLastError();
  };
  switch (replicas.count) {
    case 1:
      return launch(meanKernel<1, T>);
    case 2:
      return launch(meanKernel<2, T>);
    case 3:
      return launch(meanKernel<3, T>);
    case 4:
      return launch(meanKernel<4, T>);
    case 5:
      return launch(meanKernel<5, T>);
    case 6:
      return launch(meanKernel<6, T>);
    case 7:
      return launch(meanKernel<7, T>);
    case 8:
      return launch(meanKernel<8, T>);
  }
  for (int which = 0; distances && which <= replicas.count; ++which) {
    distanceKernel<T><<<blocks, kBlockThreads, 0, stream>>>(replicas, which, begin, end, distances + which,
                                                            scratch, counter);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  if (write) meanOfManyKernel<T><<<blocks, kBlockThreads, 0, stream>>>(replicas, shadow, begin, end);
  return cudaGetLastError();
}

template <typename T>
cudaError_t launchMoments(const ReplicaTable<T>& replicas, T* shadow, std::int64_t begin, std::int64_t end,
                          std::int64_t half, int origin, cudaStream_t stream) {
  momentsKernel<T>
      <<<mergeBlocks(end - begin), kBlockThreads, 0, stream>>>(replicas, shadow, begin, end, half, origin);
  return cudaGetLastError();
}

template <typename T>
cudaError_t launchAddMean(const ReplicaTable<T>& vectors, T* out, std::int64_t begin, std::int64_t end,
                          double* result, double* scratch, std::uint32_t* counter, cudaStream_t stream) {
  addMeanKernel<T><<<mergeBlocks(end - begin), kBlockThreads, 0, stream>>>(vectors, out, begin, end, result,
                                                                           scratch, counter);
  return cudaGetLastError();
}

#define MUSTER_INSTANTIATE(T)                                                                              \
  template cudaError_t launchMean(const ReplicaTable<T>&, T*, std::int64_t, std::int64_t, bool, double*,   \
                                  double*, std::uint32_t*, cudaStream_t);                                  \
  template cudaError_t launchMoments(const ReplicaTable<T>&, T*, std::int64_t, std::int64_t, std::int64_t, \
                                     int, cudaStream_t);                                                   \
  template cudaError_t launchAddMean(const ReplicaTable<T>&, T*, std::int64_t, std::int64_t, double*,      \
                                     double*, std::uint32_t*, cudaStream_t);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)
#undef MUSTER_INSTANTIATE

}  // namespace muster::cuda
