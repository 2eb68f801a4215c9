#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// Images as planes [height, width, lanes], all lanes treated alike, and the padding around them.
struct PadCall {
  std::int64_t planes, height, width, lanes;
  std::int64_t top, bottom, left, right;
};
cudaError_t launchPad(const PadCall& call, const float* x, float* y, cudaStream_t stream);
cudaError_t launchPadBackward(const PadCall& call, const float* gradY, float* gradX, cudaStream_t stream);

/// Images, and the integer factors by which they are enlarged.
struct UpsampleCall {
  std::int64_t planes, height, width, lanes;
  std::int64_t down, across;  // factors
};
cudaError_t launchNearest(const UpsampleCall& call, const float* x, float* y, cudaStream_t stream);
cudaError_t launchBilinear(const UpsampleCall& call, const float* x, float* y, cudaStream_t stream);
/// Sums for each pixel the gradients of its copies, row by row.
cudaError_t launchNearestBackward(const UpsampleCall& call, const float* gradY, float* gradX,
                                  cudaStream_t stream);
cudaError_t launchBilinearBackward(const UpsampleCall& call, const float* gradY, float* gradX,
                                   cudaStream_t stream);

}  // namespace muster::cuda
