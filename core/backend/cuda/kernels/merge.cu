#include "muster/core/backend/cuda/kernels/merge.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

// Note [Access in groups]
// A thread loads a group of 16 bytes from each replica, in one access if all replicas and the merged copy are
// aligned. Otherwise, and after the last whole group, it loads the same elements one by one, so distances are
// summed in the same order. A thread loads about 128 bytes before it uses any. With two blocks of 256 threads
// per multiprocessor, an H100 has 64 KB of loads in flight on each of its 132 multiprocessors: more than
// twice the data that its memory of 3.35 TB/s moves in a microsecond, the time of an access.

/// Blocks that must fit on a multiprocessor so that the whole grid is resident, on 132 or on 88
/// multiprocessors, and no block starts late.
constexpr int residentBlocks(bool measured) {
  return measured ? 2 : 3;
}

int mergeBlocks(std::int64_t elements) {
  const std::int64_t blocks = (elements + 4 * kBlockThreads - 1) / (4 * kBlockThreads);
  return static_cast<int>(blocks < 1 ? 1 : blocks < kMergeBlocks ? blocks : kMergeBlocks);
}

template <typename T>
struct alignas(16) Group {
  static constexpr int kElements = 16 / static_cast<int>(sizeof(T));
  T at[kElements];
};

/// Groups of each replica that a thread loads before it uses them.
constexpr int groupsAtOnce(int replicas) {
  return replicas <= 2 ? 4 : replicas <= 4 ? 2 : 1;
}

template <typename T>
__device__ const Group<T>& groupAt(const T* from) {
  return *reinterpret_cast<const Group<T>*>(from);
}

/// Loads `count` elements, at most a group, and fills the group with zeros, which do not change any sum.
template <typename T>
__device__ Group<T> loadSome(const T* from, std::int64_t count) {
  Group<T> group;
#pragma unroll
  for (int e = 0; e < Group<T>::kElements; ++e) group.at[e] = e < count ? from[e] : T{0};
  return group;
}

template <typename T>
__device__ void storeSome(T* to, const Group<T>& group, std::int64_t count) {
#pragma unroll
  for (int e = 0; e < Group<T>::kElements; ++e)
    if (e < count) to[e] = group.at[e];
}

/// The mean of a group. The sum begins at -0.0, so the mean of negative zeros is a negative zero. Replicas
/// without a share are skipped, whatever they contain.
template <typename T>
struct Mean {
  double at[Group<T>::kElements];

  __device__ Mean() {
#pragma unroll
    for (double& mean : at) mean = -0.0;
  }
  __device__ void add(double share, const Group<T>& values) {
    if (share == 0) return;
#pragma unroll
    for (int e = 0; e < Group<T>::kElements; ++e) at[e] += share * values.at[e];
  }
  __device__ Group<T> rounded() const {
    Group<T> group;
#pragma unroll
    for (int e = 0; e < Group<T>::kElements; ++e) group.at[e] = static_cast<T>(at[e]);
    return group;
  }
};

/// Whether any refusal is not 0; all threads of the grid get the same result. The loads are independent.
__device__ bool anyRefused(const RefusalTable& refused) {
  bool any = false;
  for (int r = 0; r < refused.count; ++r) any |= *refused.at[r] != 0;
  return any;
}

/// Adds squared distances and the mean's square to `sums` if kMeasured. @return a group's rounded mean.
template <bool kMeasured, int W, typename T>
__device__ Group<T> meanOf(const ReplicaTable<T>& replicas, const Group<T> (&values)[W],
                           double (&sums)[W + 1]) {
  Mean<T> mean;
#pragma unroll
  for (int w = 0; w < W; ++w) mean.add(replicas.share[w], values[w]);
  if constexpr (kMeasured) {
#pragma unroll
    for (int e = 0; e < Group<T>::kElements; ++e) {
#pragma unroll
      for (int w = 0; w < W; ++w) sums[w] += (values[w].at[e] - mean.at[e]) * (values[w].at[e] - mean.at[e]);
      sums[W] += mean.at[e] * mean.at[e];
    }
  }
  return mean.rounded();
}

/// For W replicas: elements stay in registers between the mean and the distances, so memory is read once.
/// @param aligned  all replicas may be accessed in groups.
template <bool kMeasured, int W, typename T>
__global__ void __launch_bounds__(kBlockThreads, residentBlocks(kMeasured))
    meanKernel(const __grid_constant__ ReplicaTable<T> replicas, T* mergedCopy, std::int64_t elements,
               bool aligned, bool write, double* distances, double* scratch, std::uint32_t* counter,
               const __grid_constant__ RefusalTable refused) {
  if (anyRefused(refused)) return;
  constexpr int kElements = Group<T>::kElements, kAtOnce = groupsAtOnce(W);
  double sums[W + 1] = {};
  const std::int64_t groups = (elements + kElements - 1) / kElements;
  const std::int64_t whole = aligned ? elements / kElements : 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  while (group < whole) {
    Group<T> values[kAtOnce][W];
#pragma unroll
    for (int g = 0; g < kAtOnce; ++g)
      if (group + g * step < whole)
#pragma unroll
        for (int w = 0; w < W; ++w) values[g][w] = groupAt(replicas.at[w] + (group + g * step) * kElements);
#pragma unroll
    for (int g = 0; g < kAtOnce; ++g) {
      if (group >= whole) break;
      const Group<T> mean = meanOf<kMeasured>(replicas, values[g], sums);
      const std::int64_t at = group * kElements;
      group += step;
      if (kMeasured && !write) continue;
#pragma unroll
      for (int w = 0; w < W; ++w) *reinterpret_cast<Group<T>*>(replicas.at[w] + at) = mean;
      if (mergedCopy) *reinterpret_cast<Group<T>*>(mergedCopy + at) = mean;
    }
  }
  for (; group < groups; group += step) {
    const std::int64_t at = group * kElements, left = elements - at;
    Group<T> values[W];
#pragma unroll
    for (int w = 0; w < W; ++w) values[w] = loadSome(replicas.at[w] + at, left);
    const Group<T> mean = meanOf<kMeasured>(replicas, values, sums);
    if (kMeasured && !write) continue;
#pragma unroll
    for (int w = 0; w < W; ++w) storeSome(replicas.at[w] + at, mean, left);
    if (mergedCopy) storeSome(mergedCopy + at, mean, left);
  }
  if constexpr (kMeasured) {
    if (!sumOverGrid(sums, scratch, counter) || threadIdx.x != 0) return;
    for (int w = 0; w <= W; ++w) distances[w] = sums[w];
  }
}

/// For any number of replicas: for the distances, each replica is read again from the cache.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    meanOfManyKernel(const __grid_constant__ ReplicaTable<T> replicas, T* mergedCopy, std::int64_t elements,
                     bool aligned, const __grid_constant__ RefusalTable refused) {
  if (anyRefused(refused)) return;
  constexpr int kElements = Group<T>::kElements, kAtOnce = 8;
  const std::int64_t groups = (elements + kElements - 1) / kElements;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
       group < groups; group += step) {
    const std::int64_t at = group * kElements, left = elements - at;
    const bool whole = aligned && left >= kElements;
    const auto store = [&](T* to, const Group<T>& values) {
      if (whole)
        *reinterpret_cast<Group<T>*>(to + at) = values;
      else
        storeSome(to + at, values, left);
    };
    const auto meanBy = [&](auto load) {
      Mean<T> mean;
      for (int first = 0; first < replicas.count; first += kAtOnce) {
        Group<T> values[kAtOnce];
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r)
          if (first + r < replicas.count) values[r] = load(replicas.at[first + r] + at);
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r)
          if (first + r < replicas.count) mean.add(replicas.share[first + r], values[r]);
      }
      return mean.rounded();
    };
    const Group<T> rounded = whole ? meanBy([](const T* from) { return groupAt(from); })
                                   : meanBy([&](const T* from) { return loadSome(from, left); });
    for (int w = 0; w < replicas.count; ++w) store(replicas.at[w], rounded);
    if (mergedCopy) store(mergedCopy, rounded);
  }
}

/// Computes distances[which] for any number of replicas; the mean's norm if which = count.
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
    momentsKernel(const __grid_constant__ ReplicaTable<T> replicas, T* mergedCopy, std::int64_t begin,
                  std::int64_t end, std::int64_t half, int originReplica,
                  const __grid_constant__ RefusalTable refused) {
  if (anyRefused(refused)) return;
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
    const T variance = static_cast<T>(deviation < 0 ? 0.0 : deviation);  // keeps NaN
    for (int w = 0; w < replicas.count; ++w) {
      replicas.at[w][i] = mean;
      replicas.at[w][half + i] = variance;
    }
    if (mergedCopy) {
      mergedCopy[i] = mean;
      mergedCopy[half + i] = variance;
    }
  }
}

}  // namespace

template <typename T>
cudaError_t launchMean(ReplicaTable<T> replicas, T* mergedCopy, std::int64_t begin, std::int64_t end,
                       bool write, double* distances, double* scratch, std::uint32_t* counter,
                       const RefusalTable& refused, cudaStream_t stream) {
  const std::int64_t elements = end - begin;
  const int blocks = mergeBlocks(elements);
  const auto isAligned = [](const T* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; };
  for (int w = 0; w < replicas.count; ++w) replicas.at[w] += begin;
  if (mergedCopy) mergedCopy += begin;
  bool aligned = isAligned(mergedCopy);  // also true for a null pointer
  for (int w = 0; w < replicas.count; ++w) aligned = aligned && isAligned(replicas.at[w]);
  const auto launch = [&](auto kernel) {
    kernel<<<blocks, kBlockThreads, 0, stream>>>(replicas, mergedCopy, elements, aligned, write, distances,
                                                 scratch, counter, refused);
    return cudaGetLastError();
  };
  switch (replicas.count) {
    case 1:
      return launch(distances ? meanKernel<true, 1, T> : meanKernel<false, 1, T>);
    case 2:
      return launch(distances ? meanKernel<true, 2, T> : meanKernel<false, 2, T>);
    case 3:
      return launch(distances ? meanKernel<true, 3, T> : meanKernel<false, 3, T>);
    case 4:
      return launch(distances ? meanKernel<true, 4, T> : meanKernel<false, 4, T>);
    case 5:
      return launch(distances ? meanKernel<true, 5, T> : meanKernel<false, 5, T>);
    case 6:
      return launch(distances ? meanKernel<true, 6, T> : meanKernel<false, 6, T>);
    case 7:
      return launch(distances ? meanKernel<true, 7, T> : meanKernel<false, 7, T>);
    case 8:
      return launch(distances ? meanKernel<true, 8, T> : meanKernel<false, 8, T>);
  }
  for (int which = 0; distances && which <= replicas.count; ++which) {
    distanceKernel<T><<<blocks, kBlockThreads, 0, stream>>>(replicas, which, 0, elements, distances + which,
                                                            scratch, counter);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  if (write)
    meanOfManyKernel<T>
        <<<blocks, kBlockThreads, 0, stream>>>(replicas, mergedCopy, elements, aligned, refused);
  return cudaGetLastError();
}

template <typename T>
cudaError_t launchMoments(const ReplicaTable<T>& replicas, T* mergedCopy, std::int64_t begin,
                          std::int64_t end, std::int64_t half, int origin, const RefusalTable& refused,
                          cudaStream_t stream) {
  momentsKernel<T><<<mergeBlocks(end - begin), kBlockThreads, 0, stream>>>(replicas, mergedCopy, begin, end,
                                                                           half, origin, refused);
  return cudaGetLastError();
}

#define MUSTER_INSTANTIATE(T)                                                                              \
  template cudaError_t launchMean(ReplicaTable<T>, T*, std::int64_t, std::int64_t, bool, double*, double*, \
                                  std::uint32_t*, const RefusalTable&, cudaStream_t);                      \
  template cudaError_t launchMoments(const ReplicaTable<T>&, T*, std::int64_t, std::int64_t, std::int64_t, \
                                     int, const RefusalTable&, cudaStream_t);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)
#undef MUSTER_INSTANTIATE

}  // namespace muster::cuda
