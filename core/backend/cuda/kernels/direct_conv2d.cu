#include "muster/core/backend/cuda/kernels/direct_conv2d.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/for_each.cuh"

// A sample's padded input is in shared memory, so products need no bounds checks. A thread computes four
// output channels: one 16-byte read loads a tap's weights, or a pixel's gradients, for four products.

namespace muster::cuda {
namespace {

constexpr int kChannels = 4, kPixels = 4;  // per thread
constexpr int kWarps = kBlockThreads / 32;

/// Padded input of one sample.
struct Plane {
  int height, width;

  __host__ __device__ explicit Plane(const DirectCall& c)
      : height(c.height + 2 * c.padding[0]), width(c.width + 2 * c.padding[1]) {}
  __host__ __device__ int floats(const DirectCall& c) const { return c.inChannels * height * width; }
  /// Offset of tap t (channel, row, column) for the output at the origin.
  __device__ int tap(const DirectCall& c, int t) const {
    const int window = c.kernel[0] * c.kernel[1], channel = t / window, place = t % window;
    return (channel * height + place / c.kernel[1] * c.dilation[0]) * width +
           place % c.kernel[1] * c.dilation[1];
  }
};

__host__ __device__ int groupsOf(const DirectCall& c) {
  return (c.outChannels + kChannels - 1) / kChannels;
}

/// Loads a sample's padded input. The caller synchronises before overwriting and before reading it.
__device__ void loadPlane(const DirectCall& c, const Plane& plane, const float* x, int sample, float* to) {
  const float* const from = x + static_cast<std::int64_t>(sample) * c.inChannels * c.height * c.width;
  for (int i = threadIdx.x; i < plane.floats(c); i += kBlockThreads) {
    const int column = i % plane.width - c.padding[1], row = i / plane.width % plane.height - c.padding[0];
    const int channel = i / plane.width / plane.height;
    const bool inside = row >= 0 && row < c.height && column >= 0 && column < c.width;
    to[i] = inside ? from[(channel * c.height + row) * c.width + column] : 0.0f;
  }
}

__host__ __device__ int rounded(int floats) {  // up to sixteen bytes
  return (floats + 3) / 4 * 4;
}

/// A block computes part of one sample; each thread computes four channels of pixels that are `step` apart.
/// @tparam kWidth  the kernel's width, 0 if not known at compile time.
template <int kWidth>
__global__ void __launch_bounds__(kBlockThreads)
    forwardKernel(DirectCall c, const float* x, const float* weight, const float* bias, bool relu, float* y,
                  int blocksPerSample) {
  extern __shared__ float4 shared[];
  const Plane plane(c);
  const int taps = tapsOf(c), groups = groupsOf(c), padded = groups * kChannels;
  auto* const input = reinterpret_cast<float*>(shared);
  float* const weights = input + rounded(plane.floats(c));  // [taps, padded]
  const int sample = static_cast<int>(blockIdx.x) / blocksPerSample;
  loadPlane(c, plane, x, sample, input);
  for (int i = threadIdx.x; i < taps * padded; i += kBlockThreads) {
    const int channel = i / taps, tap = i % taps;
    weights[tap * padded + channel] = channel < c.outChannels ? weight[channel * taps + tap] : 0.0f;
  }
  __syncthreads();

  const int pixels = c.outHeight * c.outWidth, step = (pixels + kPixels - 1) / kPixels;
  const int item = static_cast<int>(blockIdx.x) % blocksPerSample * kBlockThreads + threadIdx.x;
  if (item >= step * groups) return;
  const int first = item % step, channel = item / step * kChannels;
  float sums[kPixels][kChannels];
  int at[kPixels];
#pragma unroll
  for (int p = 0; p < kPixels; ++p) {
    const int pixel =
        min(first + p * step, pixels - 1);  // extra pixels repeat the last one and are not written
    at[p] = pixel / c.outWidth * c.stride[0] * plane.width + pixel % c.outWidth * c.stride[1];
#pragma unroll
    for (int k = 0; k < kChannels; ++k)
      sums[p][k] = bias && channel + k < c.outChannels ? bias[channel + k] : 0.0f;
  }
  const float* tapWeights = weights + channel;
  const int width = kWidth > 0 ? kWidth : c.kernel[1];
  for (int in = 0; in < c.inChannels; ++in)
    for (int row = 0; row < c.kernel[0]; ++row) {
      const float* const from = input + (in * plane.height + row * c.dilation[0]) * plane.width;
#pragma unroll
      for (int column = 0; column < width; ++column) {
        const float4 w = *reinterpret_cast<const float4*>(tapWeights);
        tapWeights += padded;
#pragma unroll
        for (int p = 0; p < kPixels; ++p) {
          const float value = from[at[p] + column * c.dilation[1]];
          sums[p][0] = fmaf(value, w.x, sums[p][0]);
          sums[p][1] = fmaf(value, w.y, sums[p][1]);
          sums[p][2] = fmaf(value, w.z, sums[p][2]);
          sums[p][3] = fmaf(value, w.w, sums[p][3]);
        }
      }
    }
  float* const to = y + (static_cast<std::int64_t>(sample) * c.outChannels + channel) * pixels;
#pragma unroll
  for (int k = 0; k < kChannels; ++k)
#pragma unroll
    for (int p = 0; p < kPixels; ++p)
      if (channel + k < c.outChannels && first + p * step < pixels)
        to[k * pixels + first + p * step] = relu && sums[p][k] < 0.0f ? 0.0f : sums[p][k];
}

/// Number of sums for an output channel: the gradients of its weights and of its bias.
__host__ __device__ int columnsOf(const DirectCall& c) {
  return tapsOf(c) + 1;
}
/// Columns per lane.
__host__ __device__ int lanesOf(const DirectCall& c) {
  return (columnsOf(c) + 31) / 32;
}

/// Gradients of four channels at four adjacent pixels of a row, or at its last `count` pixels.
struct Gradients {
  float at[kChannels][kPixels];
};
__device__ Gradients gradientsAt(const float* from, int channels, int pixels, int count, bool whole) {
  Gradients result;
#pragma unroll
  for (int k = 0; k < kChannels; ++k) {
    const float* const row = from + k * pixels;
    float4 four{};
    if (k < channels && whole) {
      four = *reinterpret_cast<const float4*>(row);
    } else if (k < channels) {
      four = {row[0], count > 1 ? row[1] : 0.0f, count > 2 ? row[2] : 0.0f, count > 3 ? row[3] : 0.0f};
    }
    result.at[k][0] = four.x;
    result.at[k][1] = four.y;
    result.at[k][2] = four.z;
    result.at[k][3] = four.w;
  }
  return result;
}

/// A block sums a part of the batch for four output channels. A warp takes whole rows of outputs, a lane the
/// taps `lane`, `lane` + 32, ...; after the last tap comes the bias, whose input is always 1.
template <int kLanes>
__global__ void __launch_bounds__(kBlockThreads)
    weightsKernel(DirectCall c, const float* x, const float* gradY, int parts, bool aligned, float* scratch) {
  extern __shared__ float4 shared[];
  const Plane plane(c);
  const int columns = columnsOf(c), taps = tapsOf(c), groups = groupsOf(c);
  const int pixels = c.outHeight * c.outWidth, floats = plane.floats(c);
  auto* const input = reinterpret_cast<float*>(shared);
  float* const sumsOfWarps = input + rounded(floats + 1);  // [warps, kLanes * 32, kChannels]
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int part = static_cast<int>(blockIdx.x) / groups;
  const int channel = static_cast<int>(blockIdx.x) % groups * kChannels;
  const int channels = min(kChannels, c.outChannels - channel);

  int offset[kLanes], moves[kLanes];
  float sums[kLanes][kChannels] = {};
#pragma unroll
  for (int l = 0; l < kLanes; ++l) {
    const int tap = lane + 32 * l;
    moves[l] = tap < taps ? 1 : 0;
    offset[l] = tap < taps ? plane.tap(c, tap) : floats;
  }
  if (threadIdx.x == 0) input[floats] = 1.0f;

  const auto begin = static_cast<int>(static_cast<std::int64_t>(part) * c.samples / parts);
  const auto end = static_cast<int>((static_cast<std::int64_t>(part) + 1) * c.samples / parts);
  for (int sample = begin; sample < end; ++sample) {
    __syncthreads();
    loadPlane(c, plane, x, sample, input);
    __syncthreads();
    const float* const from = gradY + (static_cast<std::int64_t>(sample) * c.outChannels + channel) * pixels;
    for (int row = warp; row < c.outHeight; row += kWarps)
      for (int column = 0; column < c.outWidth; column += kPixels) {
        const int count = min(kPixels, c.outWidth - column);
        const Gradients g = gradientsAt(from + row * c.outWidth + column, channels, pixels, count, aligned);
        const int origin = row * c.stride[0] * plane.width + column * c.stride[1];
#pragma unroll
        for (int p = 0; p < kPixels; ++p) {
          const int pixel = p < count ? origin + p * c.stride[1] : origin;  // g is 0 past the row's end
#pragma unroll
          for (int l = 0; l < kLanes; ++l) {
            const float value = p < count ? input[offset[l] + moves[l] * pixel] : 0.0f;
#pragma unroll
            for (int k = 0; k < kChannels; ++k) sums[l][k] = fmaf(g.at[k][p], value, sums[l][k]);
          }
        }
      }
  }

#pragma unroll
  for (int l = 0; l < kLanes; ++l)
#pragma unroll
    for (int k = 0; k < kChannels; ++k)
      sumsOfWarps[((warp * kLanes + l) * 32 + lane) * kChannels + k] = sums[l][k];
  __syncthreads();
  for (int i = threadIdx.x; i < channels * columns; i += kBlockThreads) {
    const int k = i / columns, column = i % columns;
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += sumsOfWarps[(w * kLanes * 32 + column) * kChannels + k];
    scratch[(part * c.outChannels + channel + k) * columns + column] = sum;
  }
}

/// Adds the parts: 32 numbers per block, eight threads per number.
__global__ void __launch_bounds__(kBlockThreads)
    addPartsKernel(DirectCall c, int parts, const float* scratch, float* gradWeight, float* gradBias) {
  __shared__ double sums[kWarps][33];
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const int columns = columnsOf(c), all = c.outChannels * columns;
  const int i = static_cast<int>(blockIdx.x) * 32 + lane;
  double sum = 0;
  if (i < all)
#pragma unroll 4
    for (int part = group; part < parts; part += kWarps) sum += scratch[part * all + i];
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || i >= all) return;
  for (int other = 1; other < kWarps; ++other) sum += sums[other][lane];
  const int channel = i / columns, column = i % columns;
  if (column < columns - 1)
    gradWeight[channel * (columns - 1) + column] = static_cast<float>(sum);
  else if (gradBias)
    gradBias[channel] = static_cast<float>(sum);
}

}  // namespace

std::int64_t directForwardBytes(const DirectCall& c) {
  const std::int64_t plane = rounded(Plane(c).floats(c));
  const std::int64_t weights = std::int64_t{tapsOf(c)} * groupsOf(c) * kChannels;
  return (plane + weights) * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t directWeightsBytes(const DirectCall& c) {
  const std::int64_t plane = rounded(Plane(c).floats(c) + 1);
  const std::int64_t sums = std::int64_t{kBlockThreads} * lanesOf(c) * kChannels;
  return (plane + sums) * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t directPartFloats(const DirectCall& c) {
  return std::int64_t{c.outChannels} * columnsOf(c);
}

cudaError_t launchDirectForward(const DirectCall& c, const float* x, const float* weight, const float* bias,
                                bool relu, float* y, cudaStream_t stream) {
  const int items = (c.outHeight * c.outWidth + kPixels - 1) / kPixels * groupsOf(c);
  const int perSample = (items + kBlockThreads - 1) / kBlockThreads;
  const auto bytes = static_cast<std::size_t>(directForwardBytes(c));
  const auto blocks = static_cast<unsigned>(c.samples * perSample);
  switch (c.kernel[1]) {
    case 3:
      forwardKernel<3><<<blocks, kBlockThreads, bytes, stream>>>(c, x, weight, bias, relu, y, perSample);
      break;
    case 5:
      forwardKernel<5><<<blocks, kBlockThreads, bytes, stream>>>(c, x, weight, bias, relu, y, perSample);
      break;
    default:
      forwardKernel<0><<<blocks, kBlockThreads, bytes, stream>>>(c, x, weight, bias, relu, y, perSample);
  }
  return cudaGetLastError();
}

cudaError_t launchDirectWeights(const DirectCall& c, const float* x, const float* gradY, int parts,
                                float* scratch, float* gradWeight, float* gradBias, cudaStream_t stream) {
  const auto bytes = static_cast<std::size_t>(directWeightsBytes(c));
  const auto blocks = static_cast<unsigned>(parts * groupsOf(c));
  const bool aligned =
      c.outWidth % kPixels == 0 && reinterpret_cast<std::uintptr_t>(gradY) % sizeof(float4) == 0;
  switch (lanesOf(c)) {
    case 1:
      weightsKernel<1><<<blocks, kBlockThreads, bytes, stream>>>(c, x, gradY, parts, aligned, scratch);
      break;
    case 2:
      weightsKernel<2><<<blocks, kBlockThreads, bytes, stream>>>(c, x, gradY, parts, aligned, scratch);
      break;
    case 3:
      weightsKernel<3><<<blocks, kBlockThreads, bytes, stream>>>(c, x, gradY, parts, aligned, scratch);
      break;
    default:
      return cudaErrorInvalidValue;
  }
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  const auto sums = static_cast<unsigned>((directPartFloats(c) + 31) / 32);
  addPartsKernel<<<sums, kBlockThreads, 0, stream>>>(c, parts, scratch, gradWeight, gradBias);
  return cudaGetLastError();
}

cudaError_t launchDirectData(const DirectCall& c, const float* gradY, const float* weight, float* gradX,
                             cudaStream_t stream) {
  const std::int64_t n = std::int64_t{c.samples} * c.inChannels * c.height * c.width;
  return forEach(n, stream, [=] __device__(std::int64_t place) {
    const auto i = static_cast<int>(place);
    const int w = i % c.width + c.padding[1], h = i / c.width % c.height + c.padding[0];
    const int in = i / c.width / c.height % c.inChannels, sample = i / c.width / c.height / c.inChannels;
    float sum = 0;
    for (int row = 0; row < c.kernel[0]; ++row)
      for (int column = 0; column < c.kernel[1]; ++column) {
        const int down = h - row * c.dilation[0], right = w - column * c.dilation[1];
        const int oh = down / c.stride[0], ow = right / c.stride[1];
        if (down < 0 || right < 0 || oh * c.stride[0] != down || ow * c.stride[1] != right) continue;
        if (oh >= c.outHeight || ow >= c.outWidth) continue;
        for (int out = 0; out < c.outChannels; ++out)
          sum = fmaf(gradY[((sample * c.outChannels + out) * c.outHeight + oh) * c.outWidth + ow],
                     weight[((out * c.inChannels + in) * c.kernel[0] + row) * c.kernel[1] + column], sum);
      }
    gradX[i] = sum;
  });
}

}  // namespace muster::cuda
