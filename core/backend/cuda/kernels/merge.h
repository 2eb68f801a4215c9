#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

inline constexpr int kMostReplicas = 32;

/// Replicas on one device, and their shares in the mean, which sum to 1.
template <typename T>
struct ReplicaTable {
  T* at[kMostReplicas];
  double share[kMostReplicas];
  int count;
};

/// Each points to a number; unless all are 0, nothing is written.
struct RefusalTable {
  const double* at[kMostReplicas];
  int count;
};

/// Elements [begin, end) of all replicas, and of `mergedCopy` if it is not null, become their mean.
/// `distances`, if not null, receives count + 1 numbers: each replica's squared distance from the mean before
/// the merge, and the mean's squared norm. If `write` is false, only `distances` is written. `scratch` has
/// mergeScratch(count) numbers.
template <typename T>
cudaError_t launchMean(ReplicaTable<T> replicas, T* mergedCopy, std::int64_t begin, std::int64_t end,
                       bool write, double* distances, double* scratch, std::uint32_t* counter,
                       const RefusalTable& refused, cudaStream_t stream);
inline constexpr std::int64_t kMergeBlocks = 264;  // two for each multiprocessor of an H100
constexpr std::int64_t mergeScratch(int replicas) {
  return kMergeBlocks * (replicas + 1);
}

/// Moments about a shift, as on the CPU: means in [begin, end), variances `half` elements later. `origin` is
/// the first replica with a share.
template <typename T>
cudaError_t launchMoments(const ReplicaTable<T>& replicas, T* mergedCopy, std::int64_t begin,
                          std::int64_t end, std::int64_t half, int origin, const RefusalTable& refused,
                          cudaStream_t stream);

}  // namespace muster::cuda
