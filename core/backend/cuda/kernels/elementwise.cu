#include "muster/core/backend/cuda/kernels/elementwise.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/cuda/kernels/reduce.cuh"
#include "muster/core/backend/host_device.h"
#include "muster/core/base/random.h"

namespace muster::cuda {
namespace {

// Comparisons let NaN through, as on the CPU.

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
  return forEach(n, stream, [=] __device__(std::int64_t i) { y[i] = forwardOf<function>(x[i], slope); });
}

template <Function function>
cudaError_t backward(const float* kept, const float* gradY, float* gradX, std::int64_t n, float slope,
                     cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) {
    gradX[i] = backwardOf<function>(kept[i], gradY[i], slope);
  });
}

/// One warp a place, whose classes lie side by side.
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

/// Where element (sample, channel, pixel) lies, by `Layout`'s numbers.
MUSTER_HOST_DEVICE std::int64_t placeIn(int layout, std::int64_t n, std::int64_t c, std::int64_t p,
                                        std::int64_t channels, std::int64_t pixels) {
  constexpr std::int64_t kBlock = 16;
  switch (layout) {
    case 0:
      return (n * channels + c) * pixels + p;
    case 1:
      return (n * pixels + p) * channels + c;
    case 2:
      return ((n * ((channels + kBlock - 1) / kBlock) + c / kBlock) * pixels + p) * kBlock + c % kBlock;
    default:
      return ((n / kBlock * channels + c) * pixels + p) * kBlock + n % kBlock;
  }
}

/// Which element lies at a place; one beyond the samples or channels is padding.
struct Element {
  std::int64_t n, c, p;
};
MUSTER_HOST_DEVICE Element elementAt(int layout, std::int64_t place, std::int64_t channels,
                                     std::int64_t pixels) {
  constexpr std::int64_t kBlock = 16;
  if (layout == 0) return {place / pixels / channels, place / pixels % channels, place % pixels};
  if (layout == 1) return {place / channels / pixels, place % channels, place / channels % pixels};
  const std::int64_t inBlock = place % kBlock, p = place / kBlock % pixels, block = place / kBlock / pixels;
  const std::int64_t blocks = (channels + kBlock - 1) / kBlock;
  if (layout == 2) return {block / blocks, block % blocks * kBlock + inBlock, p};
  return {block / channels * kBlock + inBlock, block % channels, p};
}

__device__ float valueOf(float x) {
  return x;
}
__device__ float valueOf(std::uint8_t x) {
  return __fdiv_rn(static_cast<float>(x), 255.0f);
}

/// 32 columns a block, 8 threads to each.
__global__ void __launch_bounds__(kBlockThreads)
    columnSumsKernel(const float* x, float* out, std::int64_t rows, std::int64_t columns) {
  __shared__ double parts[8][33];
  const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 32 + lane;
  double sum = 0;
  if (column < columns)
    for (std::int64_t row = group; row < rows; row += 8) sum += x[row * columns + column];
  parts[group][lane] = sum;
  __syncthreads();
  if (group != 0 || column >= columns) return;
  for (int other = 1; other < 8; ++other) sum += parts[other][lane];
  out[column] = static_cast<float>(sum);
}

/// A block a channel.
__global__ void __launch_bounds__(kBlockThreads)
    channelSumsKernel(const float* x, float* out, std::int64_t samples, std::int64_t channels,
                      std::int64_t pixels) {
  const std::int64_t channel = blockIdx.x;
  double sums[1] = {0};
  for (std::int64_t i = threadIdx.x; i < samples * pixels; i += kBlockThreads)
    sums[0] += x[(i / pixels * channels + channel) * pixels + i % pixels];
  sumOverBlock(sums);
  if (threadIdx.x == 0) out[channel] = static_cast<float>(sums[0]);
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
  return forEach(s.places, stream, [=] __device__(std::int64_t place) {
    const std::int64_t begin = place / s.pixels * s.classes * s.pixels + place % s.pixels;
    const std::int64_t end = begin + s.classes * s.pixels;
    float top = -INFINITY, sum = 0;
    for (std::int64_t i = begin; i < end; i += s.pixels) top = fmaxf(top, x[i]);
    for (std::int64_t i = begin; i < end; i += s.pixels) sum += y[i] = expf(x[i] - top);
    for (std::int64_t i = begin; i < end; i += s.pixels) y[i] /= sum;
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
  return forEach(s.places, stream, [=] __device__(std::int64_t place) {
    const std::int64_t begin = place / s.pixels * s.classes * s.pixels + place % s.pixels;
    const std::int64_t end = begin + s.classes * s.pixels;
    float dot = 0;
    for (std::int64_t i = begin; i < end; i += s.pixels) dot += y[i] * gradY[i];
    for (std::int64_t i = begin; i < end; i += s.pixels) gradX[i] = y[i] * (gradY[i] - dot);
  });
}

cudaError_t launchDropout(const float* x, float* y, const DropoutRule& rule, cudaStream_t stream) {
  const std::int64_t indices = (rule.features + 3) / 4;
  return forEach(rule.rows * indices, stream, [=] __device__(std::int64_t i) {
    const auto epoch = static_cast<std::uint64_t>(rule.position ? rule.position[0] : rule.epoch);
    const std::int64_t first = rule.position ? rule.position[1] : rule.firstExample;
    // Row n and its index-th four elements: number (first + n) * indices + index of the stream.
    const auto index = static_cast<std::uint64_t>(first * indices + i);
    const auto words = philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                               static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)},
                              rule.key);
    const std::int64_t e = i % indices * 4, row = i / indices * rule.features;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (e + k < rule.features)
        y[row + e + k] = words[k] < rule.threshold ? 0.0f : x[row + e + k] * rule.scale;
  });
}

template <typename T>
cudaError_t launchAxpy(double a, const T* x, T* y, std::int64_t n, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) { y[i] = static_cast<T>(y[i] + a * x[i]); });
}
template cudaError_t launchAxpy<float>(double, const float*, float*, std::int64_t, cudaStream_t);
template cudaError_t launchAxpy<double>(double, const double*, double*, std::int64_t, cudaStream_t);

template <typename T>
cudaError_t launchSum(const Inputs<T>& inputs, T* out, std::int64_t n, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) {
    double sum = inputs.at[0][i];
    for (int input = 1; input < inputs.count; ++input) sum += inputs.at[input][i];
    out[i] = static_cast<T>(sum);
  });
}
template cudaError_t launchSum<float>(const Inputs<float>&, float*, std::int64_t, cudaStream_t);
template cudaError_t launchSum<double>(const Inputs<double>&, double*, std::int64_t, cudaStream_t);

namespace {

template <Fold fold>
__device__ float folded(float a, float b) {
  if constexpr (fold == Fold::Add) return a + b;
  if constexpr (fold == Fold::Subtract) return a - b;
  if constexpr (fold == Fold::Product) return a * b;
  if constexpr (fold == Fold::Max) return b > a || b != b ? b : a;  // NaN comes through
}

template <Fold fold>
cudaError_t foldAll(const Inputs<float>& x, float factor, float* y, std::int64_t n, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) {
    float value = x.at[0][i];
    for (int input = 1; input < x.count; ++input) value = folded<fold>(value, x.at[input][i]);
    y[i] = factor * value;
  });
}

}  // namespace

cudaError_t launchFold(Fold fold, const Inputs<float>& x, float factor, float* y, std::int64_t n,
                       cudaStream_t stream) {
  switch (fold) {
    case Fold::Add:
      return foldAll<Fold::Add>(x, factor, y, n, stream);
    case Fold::Subtract:
      return foldAll<Fold::Subtract>(x, factor, y, n, stream);
    case Fold::Product:
      return foldAll<Fold::Product>(x, factor, y, n, stream);
    case Fold::Max:
      return foldAll<Fold::Max>(x, factor, y, n, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launchTimesOthers(const Inputs<float>& inputs, int skipped, const float* x, float* y,
                              std::int64_t n, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) {
    float value = x[i];
    for (int input = 0; input < inputs.count; ++input)
      if (input != skipped) value *= inputs.at[input][i];
    y[i] = value;
  });
}

cudaError_t launchWhereLargest(const Inputs<float>& inputs, int own, const float* mine, const float* x,
                               float* y, std::int64_t n, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) {
    const float value = mine[i];
    bool largest = true;
    for (int input = 0; input < inputs.count; ++input) {
      const float other = inputs.at[input][i];
      largest = largest && (input < own ? value > other : !(other > value));
    }
    y[i] = largest ? x[i] : 0.0f;
  });
}

cudaError_t launchScale(float factor, const float* x, float* y, std::int64_t n, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) { y[i] = factor * x[i]; });
}

cudaError_t launchCopyRuns(const float* x, std::int64_t rowX, float* y, std::int64_t rowY, std::int64_t outer,
                           std::int64_t run, cudaStream_t stream) {
  return forEach(outer * run, stream, [=] __device__(std::int64_t i) {
    y[i / run * rowY + i % run] = x[i / run * rowX + i % run];
  });
}

cudaError_t launchWiden(const std::uint8_t* x, std::int64_t* y, std::int64_t n, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) { y[i] = x[i]; });
}

cudaError_t launchClamp(float* x, float limit, std::int64_t n, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) {
    const float value = x[i];
    x[i] = value < -limit ? -limit : value > limit ? limit : value;
  });
}

template <typename T>
cudaError_t launchReorder(const T* x, float* y, const ReorderShape& s, cudaStream_t stream) {
  return forEach(s.storage, stream, [=] __device__(std::int64_t place) {
    const Element e = elementAt(s.to, place, s.channels, s.pixels);
    const bool padding = e.n >= s.samples || e.c >= s.channels;
    y[place] = padding ? 0.0f : valueOf(x[placeIn(s.from, e.n, e.c, e.p, s.channels, s.pixels)]);
  });
}
template cudaError_t launchReorder<float>(const float*, float*, const ReorderShape&, cudaStream_t);
template cudaError_t launchReorder<std::uint8_t>(const std::uint8_t*, float*, const ReorderShape&,
                                                 cudaStream_t);

cudaError_t launchLoadBytes(const std::uint8_t* x, float* y, std::int64_t n, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) { y[i] = valueOf(x[i]); });
}

cudaError_t launchToBFloat16(const float* x, void* y, std::int64_t n, cudaStream_t stream) {
  auto* const to = static_cast<__nv_bfloat16*>(y);
  return forEach(n, stream, [=] __device__(std::int64_t i) { to[i] = __float2bfloat16_rn(x[i]); });
}

cudaError_t launchFromBFloat16(const void* x, float* y, std::int64_t n, cudaStream_t stream) {
  const auto* const from = static_cast<const __nv_bfloat16*>(x);
  return forEach(n, stream, [=] __device__(std::int64_t i) { y[i] = __bfloat162float(from[i]); });
}

cudaError_t launchColumnSums(const float* x, float* out, std::int64_t rows, std::int64_t columns,
                             cudaStream_t stream) {
  columnSumsKernel<<<static_cast<unsigned>((columns + 31) / 32), kBlockThreads, 0, stream>>>(x, out, rows,
                                                                                             columns);
  return cudaGetLastError();
}

cudaError_t launchChannelSums(const float* x, float* out, std::int64_t samples, std::int64_t channels,
                              std::int64_t pixels, cudaStream_t stream) {
  channelSumsKernel<<<static_cast<unsigned>(channels), kBlockThreads, 0, stream>>>(x, out, samples, channels,
                                                                                   pixels);
  return cudaGetLastError();
}

cudaError_t launchAddBias(const float* bias, float* y, std::int64_t n, std::int64_t channels,
                          std::int64_t pixels, bool relu, cudaStream_t stream) {
  return forEach(n, stream, [=] __device__(std::int64_t i) {
    const float value = bias ? y[i] + bias[i / pixels % channels] : y[i];
    y[i] = relu && value < 0.0f ? 0.0f : value;
  });
}

}  // namespace muster::cuda
