#include "muster/core/backend/cuda/kernels/norm.h"

#include "muster/core/backend/cuda/kernels/channels.cuh"
#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

constexpr int kColumns = 32, kGroups = kBlockThreads / kColumns;
constexpr std::int64_t kShort = 0x7fffffff;  // fits 32 bits

/// The values of a channel that part `part` of `parts` sums, out of `all`.
struct Range {
  std::int64_t begin, end;
};
__device__ Range partOf(std::int64_t all, std::int64_t part, std::int64_t parts) {
  return {part * all / parts, (part + 1) * all / parts};
}

/// Where value i of a channel lies.
__device__ std::int64_t placeIn(const ChannelShape& s, std::int64_t channel, std::int64_t i) {
  std::int64_t sample = 0, pixel = i;
  if (i >= s.pixels && i <= kShort) {  // a division of 32 bits costs a fraction of one of 64
    sample = static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(s.pixels);
    pixel = i - sample * s.pixels;
  } else if (i >= s.pixels) {
    sample = i / s.pixels;
    pixel = i % s.pixels;
  }
  return (sample * s.channels + channel) * s.pixels + pixel;
}

/// scratch[part, 2, channels] = the sums of what f(place, channel, sums) adds for each value, where a channel
/// has its pixels side by side: a block a channel and part.
template <typename F>
__global__ void __launch_bounds__(kBlockThreads)
    sumPlanes(ChannelShape s, std::int64_t parts, double* scratch, F f) {
  for (std::int64_t block = blockIdx.x; block < s.channels * parts; block += gridDim.x) {
    const std::int64_t channel = block % s.channels, part = block / s.channels;
    const Range range = partOf(s.samples * s.pixels, part, parts);
    double sums[2] = {0, 0};
#pragma unroll 4  // several values are read before the first is added
    for (std::int64_t i = range.begin + threadIdx.x; i < range.end; i += kBlockThreads)
      f(placeIn(s, channel, i), channel, sums);
    sumOverBlock(sums);
    if (threadIdx.x != 0) continue;
    scratch[2 * part * s.channels + channel] = sums[0];
    scratch[(2 * part + 1) * s.channels + channel] = sums[1];
  }
}

/// The same where the channels lie side by side: 32 of them a block, 8 threads to each.
template <typename F>
__global__ void __launch_bounds__(kBlockThreads)
    sumColumns(ChannelShape s, std::int64_t parts, double* scratch, F f) {
  __shared__ double first[kGroups][kColumns + 1], second[kGroups][kColumns + 1];
  const int lane = threadIdx.x % kColumns, group = threadIdx.x / kColumns;
  const std::int64_t strips = (s.channels + kColumns - 1) / kColumns;
  for (std::int64_t block = blockIdx.x; block < strips * parts; block += gridDim.x) {
    const std::int64_t channel = block % strips * kColumns + lane, part = block / strips;
    const Range range = partOf(s.samples, part, parts);
    double sums[2] = {0, 0};
    if (channel < s.channels)
#pragma unroll 4  // several values are read before the first is added
      for (std::int64_t row = range.begin + group; row < range.end; row += kGroups)
        f(row * s.channels + channel, channel, sums);
    __syncthreads();  // the memory may still be read from the block's work before
    first[group][lane] = sums[0];
    second[group][lane] = sums[1];
    __syncthreads();
    if (group != 0 || channel >= s.channels) continue;
    for (int other = 1; other < kGroups; ++other) {
      sums[0] += first[other][lane];
      sums[1] += second[other][lane];
    }
    scratch[2 * part * s.channels + channel] = sums[0];
    scratch[(2 * part + 1) * s.channels + channel] = sums[1];
  }
}

/// Calls f(place, channel, sums) for each value and then done(channel, first, second) for each channel.
template <typename F, typename Done>
cudaError_t sumChannels(const ChannelShape& s, double* scratch, cudaStream_t stream, F f, Done done) {
  const std::int64_t parts = channelParts(s), strips = (s.channels + kColumns - 1) / kColumns;
  if (s.pixels > 1)
    sumPlanes<<<blocksFor(s.channels * parts, 1), kBlockThreads, 0, stream>>>(s, parts, scratch, f);
  else
    sumColumns<<<blocksFor(strips * parts, 1), kBlockThreads, 0, stream>>>(s, parts, scratch, f);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  return forEachRow(s.channels, stream, [=] __device__(std::int64_t channel, int lane) {
    double first = 0, second = 0;
    for (std::int64_t part = lane; part < parts; part += 32) {
      first += scratch[2 * part * s.channels + channel];
      second += scratch[(2 * part + 1) * s.channels + channel];
    }
    first = warpSum(first);
    second = warpSum(second);
    if (lane == 0) done(channel, first, second);
  });
}

/// One expression for both directions, so that a ReLU lets the gradient through exactly where it let the
/// value through.
__device__ float normalised(float x, float mean, float scale, float shift) {
  return __fmaf_rn(x - mean, scale, shift);
}

__device__ float gradientBehind(const BatchNormCall& c, std::int64_t channel, float x, float gradY) {
  const ChannelConstants& k = c.constants;
  return !c.relu || normalised(x, k.mean[channel], k.scale[channel], k.shift[channel]) > 0.0f ? gradY : 0.0f;
}

/// From the mean and variance that are kept.
__device__ void makeConstants(const BatchNormCall& call, std::int64_t c, const float* gamma,
                              const float* beta) {
  const ChannelConstants& k = call.constants;
  const double inverse = 1 / sqrt(k.varianceOf[c] + call.epsilon), mean = k.meanOf[c];
  const double times = (gamma ? gamma[c] : 1.0) * inverse;
  k.inverseOf[c] = inverse;
  k.mean[c] = static_cast<float>(mean);
  k.scale[c] = static_cast<float>(times);
  // x - mean is all but exact where the mean is large; what the mean loses in float32 goes here.
  k.shift[c] = static_cast<float>((beta ? beta[c] : 0.0) + times * (k.mean[c] - mean));
}

/// Calls f(i, channels, width) for all values, as `forEachInChannels` does.
template <typename F>
cudaError_t forEachValue(const BatchNormCall& call, bool whole, cudaStream_t stream, F f) {
  const ChannelShape& s = call.shape;
  const ChannelConstants& k = call.constants;
  return forEachInChannels({s.samples * s.channels * s.pixels, s.channels, s.pixels}, whole,
                           holdPieces(k.mean, k.scale, k.shift, k.a, k.b, k.c), stream, f);
}

}  // namespace

std::int64_t channelParts(const ChannelShape& s) {
  constexpr std::int64_t kValues = 8192, kMostParts = 256;  // values that are worth a block
  const bool planes = s.pixels > 1;
  const std::int64_t columns = planes ? 1 : s.channels < kColumns ? s.channels : kColumns;
  const std::int64_t values = s.samples * s.pixels * columns;
  const std::int64_t worth = values / kValues, most = planes ? kMostParts : s.samples;
  const std::int64_t parts = worth < kMostParts ? worth : kMostParts;
  return parts < 1 ? 1 : parts < most ? parts : most;
}

std::int64_t channelScratch(const ChannelShape& s) {
  return 2 * channelParts(s) * s.channels;
}

cudaError_t launchChannelMoments(const BatchNormCall& call, const float* x, double* sums,
                                 cudaStream_t stream) {
  const std::int64_t channels = call.shape.channels;
  return sumChannels(
      call.shape, call.scratch, stream,
      [=] __device__(std::int64_t i, std::int64_t, double(&both)[2]) {
        const double value = x[i];
        both[0] += value;
        both[1] += value * value;
      },
      [=] __device__(std::int64_t c, double first, double second) {
        sums[c] = first;
        sums[channels + c] = second;
      });
}

cudaError_t launchConstantsOfSums(const BatchNormCall& call, const double* sums, double count,
                                  const float* gamma, const float* beta, cudaStream_t stream) {
  return forEach(call.shape.channels, stream, [=] __device__(std::int64_t c) {
    const double mean = sums[c] / count;
    const double variance = sums[call.shape.channels + c] / count - mean * mean;
    call.constants.meanOf[c] = mean;
    call.constants.varianceOf[c] = variance < 0 ? 0 : variance;  // NaN stays
    makeConstants(call, c, gamma, beta);
  });
}

cudaError_t launchConstantsOf(const BatchNormCall& call, const float* mean, const float* variance,
                              const float* gamma, const float* beta, cudaStream_t stream) {
  return forEach(call.shape.channels, stream, [=] __device__(std::int64_t c) {
    call.constants.meanOf[c] = mean[c];
    call.constants.varianceOf[c] = variance[c];
    makeConstants(call, c, gamma, beta);
  });
}

cudaError_t launchNormalise(const BatchNormCall& call, const float* x, float* y, cudaStream_t stream) {
  const ChannelConstants k = call.constants;
  const bool relu = call.relu;
  return forEachValue(call, holdPieces(x, y), stream, [=] __device__(auto i, auto channels, auto width) {
    const auto mean = channels.of(k.mean), scale = channels.of(k.scale), shift = channels.of(k.shift);
    auto values = read<width>(x + i);
#pragma unroll
    for (int at = 0; at < width; ++at) {
      const float value = normalised(values.at[at], mean.at[at], scale.at[at], shift.at[at]);
      values.at[at] = relu && value < 0.0f ? 0.0f : value;  // NaN stays
    }
    write(y + i, values);
  });
}

cudaError_t launchMoveStatistics(const BatchNormCall& call, double momentum, float* mean, float* variance,
                                 cudaStream_t stream) {
  return forEach(call.shape.channels, stream, [=] __device__(std::int64_t c) {
    const double ofBatch = call.constants.meanOf[c], spread = call.constants.varianceOf[c];
    if (!isfinite(ofBatch) || !isfinite(spread)) return;
    mean[c] = static_cast<float>((1 - momentum) * mean[c] + momentum * ofBatch);
    variance[c] = static_cast<float>((1 - momentum) * variance[c] + momentum * spread);
  });
}

cudaError_t launchGradientSums(const BatchNormCall& call, const float* x, const float* gradY, double* sums,
                               float* gradGamma, float* gradBeta, cudaStream_t stream) {
  const std::int64_t channels = call.shape.channels;
  return sumChannels(
      call.shape, call.scratch, stream,
      [=] __device__(std::int64_t i, std::int64_t c, double(&both)[2]) {
        const double g = gradientBehind(call, c, x[i], gradY[i]);
        both[0] += g;
        both[1] += g * (x[i] - call.constants.meanOf[c]);
      },
      [=] __device__(std::int64_t c, double first, double second) {
        const double products = second * call.constants.inverseOf[c];
        sums[c] = first;
        sums[channels + c] = products;
        if (gradBeta) gradBeta[c] = static_cast<float>(first);
        if (gradGamma) gradGamma[c] = static_cast<float>(products);
      });
}

cudaError_t launchBatchNormGradient(const BatchNormCall& call, const float* x, const float* gradY,
                                    const double* sums, double count, float* gradX, cudaStream_t stream) {
  const ChannelConstants& k = call.constants;
  const std::int64_t channels = call.shape.channels;
  const cudaError_t error = forEach(channels, stream, [=] __device__(std::int64_t c) {
    const double a = k.scale[c];
    const double b = sums ? -a * k.inverseOf[c] * sums[channels + c] / count : 0.0;
    k.a[c] = k.scale[c];
    k.b[c] = static_cast<float>(b);
    k.c[c] = sums ? static_cast<float>(b * (k.mean[c] - k.meanOf[c]) - a * sums[c] / count) : 0.0f;
  });
  if (error != cudaSuccess) return error;
  const bool relu = call.relu;
  return forEachValue(
      call, holdPieces(x, gradY, gradX), stream, [=] __device__(auto i, auto channels, auto width) {
        const auto mean = channels.of(k.mean), scale = channels.of(k.scale), shift = channels.of(k.shift);
        const auto a = channels.of(k.a), b = channels.of(k.b), c = channels.of(k.c);
        const auto values = read<width>(x + i);
        auto grads = read<width>(gradY + i);
#pragma unroll
        for (int at = 0; at < width; ++at) {
          const float value = values.at[at];
          const bool passes = !relu || normalised(value, mean.at[at], scale.at[at], shift.at[at]) > 0.0f;
          const float grad = passes ? grads.at[at] : 0.0f;
          grads.at[at] = a.at[at] * grad + (b.at[at] * (value - mean.at[at]) + c.at[at]);
        }
        write(gradX + i, grads);
      });
}

namespace {

__device__ float normalised(const RowMoments& m, float x) {
  return (x - m.mean) * m.inverse + m.rest;
}

}  // namespace

cudaError_t launchLayerNorm(const LayerNormCall& call, const float* x, const float* gamma, const float* beta,
                            float* y, cudaStream_t stream) {
  return forEachRow(call.rows, stream, [=] __device__(std::int64_t row, int lane) {
    const float* const from = x + row * call.features;
    float* const to = y + row * call.features;
    const auto count = static_cast<double>(call.features);
    double sum = 0, squares = 0;
    for (std::int64_t i = lane; i < call.features; i += 32) sum += from[i];
    const double mean = warpSum(sum) / count;
    for (std::int64_t i = lane; i < call.features; i += 32) squares += (from[i] - mean) * (from[i] - mean);
    const double inverse = 1 / sqrt(warpSum(squares) / count + call.epsilon);
    const auto mean32 = static_cast<float>(mean);
    const RowMoments m{mean32, static_cast<float>(inverse), static_cast<float>((mean32 - mean) * inverse)};
    if (lane == 0) call.moments[row] = m;
    for (std::int64_t i = lane; i < call.features; i += 32)
      to[i] = normalised(m, from[i]) * (gamma ? gamma[i] : 1.0f) + (beta ? beta[i] : 0.0f);
  });
}

cudaError_t launchLayerNormGradient(const LayerNormCall& call, const float* x, const float* gamma,
                                    const float* gradY, float* gradX, cudaStream_t stream) {
  return forEachRow(call.rows, stream, [=] __device__(std::int64_t row, int lane) {
    const std::int64_t first = row * call.features;
    const RowMoments m = call.moments[row];
    const auto gradientAt = [&](std::int64_t i) { return gradY[first + i] * (gamma ? gamma[i] : 1.0f); };
    double sum = 0, products = 0;
    for (std::int64_t i = lane; i < call.features; i += 32) {
      const double g = gradientAt(i);
      sum += g;
      products += g * normalised(m, x[first + i]);
    }
    const auto count = static_cast<double>(call.features);
    const auto mean = static_cast<float>(warpSum(sum) / count);
    const auto along = static_cast<float>(warpSum(products) / count);
    for (std::int64_t i = lane; i < call.features; i += 32)
      gradX[first + i] = m.inverse * (gradientAt(i) - mean - normalised(m, x[first + i]) * along);
  });
}

cudaError_t launchLayerNormParameters(const LayerNormCall& call, const float* x, const float* gradY,
                                      float* gradGamma, float* gradBeta, double* scratch,
                                      cudaStream_t stream) {
  return sumChannels(
      {call.rows, call.features, 1}, scratch, stream,
      [=] __device__(std::int64_t i, std::int64_t, double(&both)[2]) {
        const double g = gradY[i];
        both[0] += g * normalised(call.moments[i / call.features], x[i]);
        both[1] += g;
      },
      [=] __device__(std::int64_t c, double first, double second) {
        gradGamma[c] = static_cast<float>(first);
        gradBeta[c] = static_cast<float>(second);
      });
}

}  // namespace muster::cuda
