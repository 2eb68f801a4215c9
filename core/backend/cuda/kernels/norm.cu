#include "muster/core/backend/cuda/kernels/norm.h"

#include "muster/core/backend/cuda/kernels/channel_sums.cuh"
#include "muster/core/backend/cuda/kernels/channels.cuh"
#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

/// Both directions use this expression, so ReLU passes the gradient exactly where it passed the value.
__device__ float normalised(float x, float mean, float scale, float shift) {
  return __fmaf_rn(x - mean, scale, shift);
}

__device__ float gradientBehind(const BatchNormCall& c, std::int64_t channel, float x, float gradY) {
  const ChannelConstants& k = c.constants;
  return !c.relu || normalised(x, k.mean[channel], k.scale[channel], k.shift[channel]) > 0.0f ? gradY : 0.0f;
}

/// Computes the constants from the mean and variance.
__device__ void makeConstants(const BatchNormCall& call, std::int64_t c, const float* gamma,
                              const float* beta) {
  const ChannelConstants& k = call.constants;
  const double inverse = 1 / sqrt(k.varianceOf[c] + call.epsilon), mean = k.meanOf[c];
  const double times = (gamma ? gamma[c] : 1.0) * inverse;
  k.inverseOf[c] = inverse;
  k.mean[c] = static_cast<float>(mean);
  k.scale[c] = static_cast<float>(times);
  // x - mean is nearly exact for a large mean; the mean's rounding error in float32 is added here.
  k.shift[c] = static_cast<float>((beta ? beta[c] : 0.0) + times * (k.mean[c] - mean));
}

/// Calls f(i, channels, width) for all values, as `forEachInChannels` does.
template <typename F>
cudaError_t forEachValue(const BatchNormCall& call, bool whole, cudaStream_t stream, F f) {
  const ChannelShape& s = call.shape;
  const ChannelConstants& k = call.constants;
  return forEachInChannels(s, whole, holdPieces(k.mean, k.scale, k.shift, k.a, k.b, k.c), stream, f);
}

}  // namespace

cudaError_t launchChannelMoments(const BatchNormCall& call, const float* x, double* sums,
                                 cudaStream_t stream) {
  const std::int64_t channels = call.shape.channels;
  return sumChannels<2>(
      call.shape, call.partial, stream,
      [=] __device__(const ChannelValue& v, double(&both)[2]) {
        const double value = x[v.place];
        both[0] = value;
        both[1] = value * value;
      },
      [=] __device__(std::int64_t c, const double(&both)[2]) {
        sums[c] = both[0];
        sums[channels + c] = both[1];
      });
}

cudaError_t launchConstantsOfSums(const BatchNormCall& call, const double* sums, double count,
                                  const float* gamma, const float* beta, cudaStream_t stream) {
  return forEach(call.shape.channels, stream, [=] __device__(std::int64_t c) {
    const double mean = sums[c] / count;
    const double variance = sums[call.shape.channels + c] / count - mean * mean;
    call.constants.meanOf[c] = mean;
    call.constants.varianceOf[c] = variance < 0 ? 0 : variance;  // keeps NaN
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
      values.at[at] = relu && value < 0.0f ? 0.0f : value;  // keeps NaN
    }
    write(y + i, values);
  });
}

cudaError_t launchMoveStatistics(const BatchNormCall& call, double momentum, float* mean, float* variance,
                                 cudaStream_t stream) {
  return forEach(call.shape.channels, stream, [=] __device__(std::int64_t c) {
    const double ofBatch = call.constants.meanOf[c], spread = call.constants.varianceOf[c];
    const auto m = static_cast<float>((1 - momentum) * mean[c] + momentum * ofBatch);
    const auto v = static_cast<float>((1 - momentum) * variance[c] + momentum * spread);
    if (!isfinite(m) || !isfinite(v)) return;
    mean[c] = m;
    variance[c] = v;
  });
}

cudaError_t launchGradientSums(const BatchNormCall& call, const float* x, const float* gradY, double* sums,
                               float* gradGamma, float* gradBeta, cudaStream_t stream) {
  const std::int64_t channels = call.shape.channels;
  return sumChannels<2>(
      call.shape, call.partial, stream,
      [=] __device__(const ChannelValue& v, double(&both)[2]) {
        const float value = x[v.place];
        const double g = gradientBehind(call, v.channel, value, gradY[v.place]);
        both[0] = g;
        both[1] = g * (value - call.constants.meanOf[v.channel]);
      },
      [=] __device__(std::int64_t c, const double(&both)[2]) {
        const double products = both[1] * call.constants.inverseOf[c];
        sums[c] = both[0];
        sums[channels + c] = products;
        if (gradBeta) gradBeta[c] = static_cast<float>(both[0]);
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
                                      float* gradGamma, float* gradBeta, const PartialSums& partial,
                                      cudaStream_t stream) {
  return sumChannels<2>(
      {call.rows, call.features, 1}, partial, stream,
      [=] __device__(const ChannelValue& v, double(&both)[2]) {
        const double g = gradY[v.place];
        both[0] = g * normalised(call.moments[v.sample], x[v.place]);
        both[1] = g;
      },
      [=] __device__(std::int64_t c, const double(&both)[2]) {
        gradGamma[c] = static_cast<float>(both[0]);
        gradBeta[c] = static_cast<float>(both[1]);
      });
}

}  // namespace muster::cuda
