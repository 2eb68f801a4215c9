#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// *count += the number of the n elements that are NaN or infinite.
cudaError_t launchCountNonFinite(const void* x, bool isDouble, std::int64_t n, double* count,
                                 cudaStream_t stream);

}  // namespace muster::cuda
