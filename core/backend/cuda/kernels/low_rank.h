#pragma once

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// See `projectDelta` and `codeLowRank`; all pointers are of float32, or with `isDouble` of float64 elements.
struct LowRankCall {
  const void* values;
  void* sent;
  void* residual;
  const void* means;
  void* factors;
  bool isDouble;
  double remember;
  std::int64_t offset, rows, columns, rank;
};
cudaError_t launchProjectDelta(const LowRankCall& call, cudaStream_t stream);
cudaError_t launchCodeLowRank(const LowRankCall& call, cudaStream_t stream);

}  // namespace muster::cuda
