#pragma once

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// Copies rows of `rowBytes` bytes: row i of `target` is row rows[i] of `source`, which has `sourceRows`; if
/// that row does not exist, all bits become 1. Bytes are copied in the largest pieces that addresses and
/// sizes allow.
cudaError_t launchGather(const void* source, std::int64_t sourceRows, const std::int64_t* rows,
                         std::int64_t count, std::int64_t rowBytes, void* target, cudaStream_t stream);

}  // namespace muster::cuda
