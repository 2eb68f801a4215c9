#pragma once

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// Copies rows of `rowBytes` bytes each: row i of `target` is row rows[i] of `source`, which has
/// `sourceRows`; all ones in its bits where there is no such row. Bytes are moved in the largest pieces that
/// addresses and sizes allow.
cudaError_t launchGather(const void* source, std::int64_t sourceRows, const std::int64_t* rows,
                         std::int64_t count, std::int64_t rowBytes, void* target, cudaStream_t stream);

}  // namespace muster::cuda
