#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// Checks that the program has code for the current device; all files have code for the same devices. @return
/// an error if it has none.
cudaError_t findCode();

enum class Function { Relu, LeakyRelu, Tanh, Sigmoid, Gelu };

/// y = f(x); x and y may be the same memory.
cudaError_t launchForward(Function function, const float* x, float* y, std::int64_t n, float slope,
                          cudaStream_t stream);
/// gradX = gradY f'; `kept` is y, for Gelu x.
cudaError_t launchBackward(Function function, const float* kept, const float* gradY, float* gradX,
                           std::int64_t n, float slope, cudaStream_t stream);

/// `places` sets of `classes` numbers that are `pixels` apart; set p starts at p / pixels * classes * pixels
/// + p % pixels.
struct SoftmaxShape {
  std::int64_t places, classes, pixels;
};
cudaError_t launchSoftmax(const float* x, float* y, SoftmaxShape shape, cudaStream_t stream);
cudaError_t launchSoftmaxBackward(const float* y, const float* gradY, float* gradX, SoftmaxShape shape,
                                  cudaStream_t stream);

}  // namespace muster::cuda
