#include "muster/core/backend/cuda/kernels/activation.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

// The comparisons keep NaN, as on the CPU.

constexpr float kInvSqrt2 = 0.70710678f;
constexpr float kInvSqrt2Pi = 0.39894228f;

__device__ float phi(float x) {  // the standard normal distribution function
  return 0.5f * erfcf(-x * kInvSqrt2);
}

template <Function function>
__device__ float forwardOf(float x, float slope) {
  if constexpr (function == Function::Relu) return x < 0.0f ? 0.0f : x;
  if constexpr (function == Function::LeakyRelu) return x > 0.0f ? x : slope * x;
  if constexpr (function == Function::Tanh) return tanhf(x);
  if constexpr (function == Function::Sigmoid) return sigmoid(x);
  if constexpr (function == Function::Gelu) return x * phi(x);
}

template <Function function>
__device__ float backwardOf(float kept, float grad, float slope) {
  if constexpr (function == Function::Relu) return kept > 0.0f ? grad : 0.0f;
  if constexpr (function == Function::LeakyRelu) return kept > 0.0f ? grad : slope * grad;
  if constexpr (function == Function::Tanh) return grad * (1.0f - kept * kept);
  if constexpr (function == Function::Sigmoid) return grad * kept * (1.0f - kept);
  if constexpr (function == Function::Gelu)
    return grad * (phi(kept) + kept * kInvSqrt2Pi * expf(-0.5f * kept * kept));
}

template <Function function>
cudaError_t forward(const float* x, float* y, std::int64_t n, float slope, cudaStream_t stream) {
  return map(n, x, y, stream, [=] __device__(float value) { return forwardOf<function>(value, slope); });
}

template <Function function>
cudaError_t backward(const float* kept, const float* gradY, float* gradX, std::int64_t n, float slope,
                     cudaStream_t stream) {
  return map(n, kept, gradY, gradX, stream,
             [=] __device__(float value, float grad) { return backwardOf<function>(value, grad, slope); });
}

/// One warp per set of adjacent classes.
__global__ void __launch_bounds__(kBlockThreads) softmaxRows(const float* x, float* y, SoftmaxShape s) {
  const int lane = threadIdx.x % 32;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (kBlockThreads / 32);
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * (kBlockThreads / 32) + threadIdx.x / 32;
       p < s.places; p += warps) {
    const float* from = x + p * s.classes;
    float* to = y + p * s.classes;
    float top = -INFINITY, sum = 0;
    for (std::int64_t c = lane; c < s.classes; c += 32) top = fmaxf(top, from[c]);
    top = warpMax(top);
    for (std::int64_t c = lane; c < s.classes; c += 32) sum += to[c] = expf(from[c] - top);
    sum = warpSum(sum);
    for (std::int64_t c = lane; c < s.classes; c += 32) to[c] /= sum;
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    softmaxRowsBackward(const float* y, const float* gradY, float* gradX, SoftmaxShape s) {
  const int lane = threadIdx.x % 32;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (kBlockThreads / 32);
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * (kBlockThreads / 32) + threadIdx.x / 32;
       p < s.places; p += warps) {
    const std::int64_t row = p * s.classes;
    float dot = 0;
    for (std::int64_t c = lane; c < s.classes; c += 32) dot += y[row + c] * gradY[row + c];
    dot = warpSum(dot);
    for (std::int64_t c = lane; c < s.classes; c += 32) gradX[row + c] = y[row + c] * (gradY[row + c] - dot);
  }
}

}  // namespace

cudaError_t findCode() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&softmaxRows));
}

cudaError_t launchForward(Function function, const float* x, float* y, std::int64_t n, float slope,
                          cudaStream_t stream) {
  switch (function) {
    case Function::Relu:
      return forward<Function::Relu>(x, y, n, slope, stream);
    case Function::LeakyRelu:
      return forward<Function::LeakyRelu>(x, y, n, slope, stream);
    case Function::Tanh:
      return forward<Function::Tanh>(x, y, n, slope, stream);
    case Function::Sigmoid:
      return forward<Function::Sigmoid>(x, y, n, slope, stream);
    case Function::Gelu:
      return forward<Function::Gelu>(x, y, n, slope, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launchBackward(Function function, const float* kept, const float* gradY, float* gradX,
                           std::int64_t n, float slope, cudaStream_t stream) {
  switch (function) {
    case Function::Relu:
      return backward<Function::Relu>(kept, gradY, gradX, n, slope, stream);
    case Function::LeakyRelu:
      return backward<Function::LeakyRelu>(kept, gradY, gradX, n, slope, stream);
    case Function::Tanh:
      return backward<Function::Tanh>(kept, gradY, gradX, n, slope, stream);
    case Function::Sigmoid:
      return backward<Function::Sigmoid>(kept, gradY, gradX, n, slope, stream);
    case Function::Gelu:
      return backward<Function::Gelu>(kept, gradY, gradX, n, slope, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launchSoftmax(const float* x, float* y, SoftmaxShape s, cudaStream_t stream) {
  if (s.places == 0) return cudaSuccess;
  if (s.pixels == 1) {
    softmaxRows<<<blocksFor(s.places, kBlockThreads / 32), kBlockThreads, 0, stream>>>(x, y, s);
    return cudaGetLastError();
  }
  const Extent classes(s.classes), pixels(s.pixels);
  // The second argument is an upper bound of the indices: `end` of the last set may exceed the tensor.
  return forEachPlace(s.places, (s.places + s.pixels) * s.classes, stream, [=] __device__(auto place) {
    const auto step = pixels.as<decltype(place)>();
    const auto begin = place / pixels * classes * pixels + place % pixels, end = begin + step * classes;
    float top = -INFINITY, sum = 0;
    for (auto i = begin; i < end; i += step) top = fmaxf(top, x[i]);
    for (auto i = begin; i < end; i += step) sum += y[i] = expf(x[i] - top);
    for (auto i = begin; i < end; i += step) y[i] /= sum;
  });
}

cudaError_t launchSoftmaxBackward(const float* y, const float* gradY, float* gradX, SoftmaxShape s,
                                  cudaStream_t stream) {
  if (s.places == 0) return cudaSuccess;
  if (s.pixels == 1) {
    softmaxRowsBackward<<<blocksFor(s.places, kBlockThreads / 32), kBlockThreads, 0, stream>>>(y, gradY,
                                                                                               gradX, s);
    return cudaGetLastError();
  }
  const Extent classes(s.classes), pixels(s.pixels);
  return forEachPlace(s.places, (s.places + s.pixels) * s.classes, stream, [=] __device__(auto place) {
    const auto step = pixels.as<decltype(place)>();
    const auto begin = place / pixels * classes * pixels + place % pixels, end = begin + step * classes;
    float dot = 0;
    for (auto i = begin; i < end; i += step) dot += y[i] * gradY[i];
    for (auto i = begin; i < end; i += step) gradX[i] = y[i] * (gradY[i] - dot);
  });
}

}  // namespace muster::cuda
