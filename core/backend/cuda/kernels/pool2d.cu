#include "muster/core/backend/cuda/kernels/pool2d.h"

#include "muster/core/backend/cuda/kernels/for_each.cuh"

namespace muster::cuda {
namespace {

/// Calls f(place of the kernel, element of x) for the pixels of output i's window that lie on the input, row
/// by row.
template <typename F>
__device__ void forEachPixel(const PoolCall& p, std::int64_t i, F f) {
  const std::int64_t lane = i % p.lanes, ow = i / p.lanes % p.outWidth,
                     oh = i / p.lanes / p.outWidth % p.outHeight;
  const std::int64_t plane = i / p.lanes / p.outWidth / p.outHeight;
  const std::int64_t row = oh * p.stride[0] - p.padding[0], column = ow * p.stride[1] - p.padding[1];
  for (std::int64_t r = row < 0 ? -row : 0; r < p.kernel[0] && row + r < p.height; ++r)
    for (std::int64_t c = column < 0 ? -column : 0; c < p.kernel[1] && column + c < p.width; ++c)
      f(r * p.kernel[1] + c, ((plane * p.height + row + r) * p.width + column + c) * p.lanes + lane);
}

/// Calls f(place of the kernel, output) for the windows that element i of x lies in, in their order.
template <typename F>
__device__ void forEachWindow(const PoolCall& p, std::int64_t i, F f) {
  const std::int64_t lane = i % p.lanes, w = i / p.lanes % p.width, h = i / p.lanes / p.width % p.height;
  const std::int64_t plane = i / p.lanes / p.width / p.height;
  const std::int64_t row = h + p.padding[0], column = w + p.padding[1];  // with the padding counted
  const std::int64_t firstRow = row < p.kernel[0] ? 0 : (row - p.kernel[0]) / p.stride[0] + 1;
  const std::int64_t firstColumn = column < p.kernel[1] ? 0 : (column - p.kernel[1]) / p.stride[1] + 1;
  for (std::int64_t oh = firstRow; oh < p.outHeight && oh * p.stride[0] <= row; ++oh)
    for (std::int64_t ow = firstColumn; ow < p.outWidth && ow * p.stride[1] <= column; ++ow)
      f((row - oh * p.stride[0]) * p.kernel[1] + column - ow * p.stride[1],
        ((plane * p.outHeight + oh) * p.outWidth + ow) * p.lanes + lane);
}

std::int64_t inputs(const PoolCall& p) {
  return p.planes * p.height * p.width * p.lanes;
}
std::int64_t outputs(const PoolCall& p) {
  return p.planes * p.outHeight * p.outWidth * p.lanes;
}

}  // namespace

template <typename Index>
cudaError_t launchMaxPool(const PoolCall& p, const float* x, float* y, Index* winners, cudaStream_t stream) {
  return forEach(outputs(p), stream, [=] __device__(std::int64_t i) {
    float best = 0;
    std::int64_t winner = -1;
    forEachPixel(p, i, [&](std::int64_t place, std::int64_t pixel) {
      const float value = x[pixel];
      // The first pixel starts; then the larger wins, or the first NaN.
      if (winner < 0 || (!(value <= best) && best == best)) {
        best = value;
        winner = place;
      }
    });
    y[i] = best;
    winners[i] = static_cast<Index>(winner);
  });
}

template <typename Index>
cudaError_t launchMaxPoolBackward(const PoolCall& p, const float* gradY, const Index* winners, float* gradX,
                                  cudaStream_t stream) {
  return forEach(inputs(p), stream, [=] __device__(std::int64_t i) {
    float sum = 0;
    forEachWindow(p, i, [&](std::int64_t place, std::int64_t output) {
      if (static_cast<std::int64_t>(winners[output]) == place) sum += gradY[output];
    });
    gradX[i] = sum;
  });
}

cudaError_t launchAveragePool(const PoolCall& p, const float* x, float* y, cudaStream_t stream) {
  const auto places = static_cast<float>(p.kernel[0] * p.kernel[1]);
  return forEach(outputs(p), stream, [=] __device__(std::int64_t i) {
    float sum = 0;
    forEachPixel(p, i, [&](std::int64_t, std::int64_t pixel) { sum += x[pixel]; });
    y[i] = sum / places;
  });
}

cudaError_t launchAveragePoolBackward(const PoolCall& p, const float* gradY, float* gradX,
                                      cudaStream_t stream) {
  const auto places = static_cast<float>(p.kernel[0] * p.kernel[1]);
  return forEach(inputs(p), stream, [=] __device__(std::int64_t i) {
    float sum = 0;
    forEachWindow(p, i, [&](std::int64_t, std::int64_t output) { sum += gradY[output] / places; });
    gradX[i] = sum;
  });
}

template cudaError_t launchMaxPool<std::uint8_t>(const PoolCall&, const float*, float*, std::uint8_t*,
                                                 cudaStream_t);
template cudaError_t launchMaxPool<std::int32_t>(const PoolCall&, const float*, float*, std::int32_t*,
                                                 cudaStream_t);
template cudaError_t launchMaxPoolBackward<std::uint8_t>(const PoolCall&, const float*, const std::uint8_t*,
                                                         float*, cudaStream_t);
template cudaError_t launchMaxPoolBackward<std::int32_t>(const PoolCall&, const float*, const std::int32_t*,
                                                         float*, cudaStream_t);

}  // namespace muster::cuda
