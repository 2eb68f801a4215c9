#pragma once

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// See `codeDelta`; all pointers are of float32, or with `isDouble` of float64 elements.
struct CodingCall {
  const void* values;
  void* sent;
  void* residual;
  bool isDouble;
  double remember;
  std::int64_t begin, end;
};
cudaError_t launchCodeBf16(const CodingCall& call, cudaStream_t stream);
cudaError_t launchCodeInt8(const CodingCall& call, cudaStream_t stream);
cudaError_t launchCodeE3M0(const CodingCall& call, cudaStream_t stream);
/// Launches a single block.
cudaError_t launchCodeLargest(const CodingCall& call, std::int64_t largest, cudaStream_t stream);

}  // namespace muster::cuda
