#include "muster/core/backend/cuda/kernels/image.h"

#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/taps.h"

namespace muster::cuda {
namespace {

/// A place in planes [height, width, lanes].
struct Pixel {
  std::int64_t plane, row, column, lane;
};
__device__ Pixel pixelAt(std::int64_t i, std::int64_t height, std::int64_t width, std::int64_t lanes) {
  const std::int64_t column = i / lanes, row = column / width;
  return {row / height, row % height, column % width, i % lanes};
}
__device__ std::int64_t placeOf(const Pixel& p, std::int64_t height, std::int64_t width, std::int64_t lanes) {
  return ((p.plane * height + p.row) * width + p.column) * lanes + p.lane;
}

std::int64_t elementsOf(const UpsampleCall& c) {
  return c.planes * c.height * c.width * c.lanes;
}

}  // namespace

cudaError_t launchPad(const PadCall& c, const float* x, float* y, cudaStream_t stream) {
  const std::int64_t height = c.top + c.height + c.bottom, width = c.left + c.width + c.right;
  return forEach(c.planes * height * width * c.lanes, stream, [=] __device__(std::int64_t i) {
    Pixel p = pixelAt(i, height, width, c.lanes);
    p.row -= c.top;
    p.column -= c.left;
    const bool inside = p.row >= 0 && p.row < c.height && p.column >= 0 && p.column < c.width;
    y[i] = inside ? x[placeOf(p, c.height, c.width, c.lanes)] : 0.0f;
  });
}

cudaError_t launchPadBackward(const PadCall& c, const float* gradY, float* gradX, cudaStream_t stream) {
  const std::int64_t height = c.top + c.height + c.bottom, width = c.left + c.width + c.right;
  return forEach(c.planes * c.height * c.width * c.lanes, stream, [=] __device__(std::int64_t i) {
    Pixel p = pixelAt(i, c.height, c.width, c.lanes);
    p.row += c.top;
    p.column += c.left;
    gradX[i] = gradY[placeOf(p, height, width, c.lanes)];
  });
}

cudaError_t launchNearest(const UpsampleCall& c, const float* x, float* y, cudaStream_t stream) {
  const std::int64_t height = c.height * c.down, width = c.width * c.across;
  return forEach(elementsOf(c) * c.down * c.across, stream, [=] __device__(std::int64_t i) {
    Pixel p = pixelAt(i, height, width, c.lanes);
    p.row /= c.down;
    p.column /= c.across;
    y[i] = x[placeOf(p, c.height, c.width, c.lanes)];
  });
}

cudaError_t launchNearestBackward(const UpsampleCall& c, const float* gradY, float* gradX,
                                  cudaStream_t stream) {
  const std::int64_t height = c.height * c.down, width = c.width * c.across;
  return forEach(elementsOf(c), stream, [=] __device__(std::int64_t i) {
    const Pixel p = pixelAt(i, c.height, c.width, c.lanes);
    float sum = 0;
    for (std::int64_t row = p.row * c.down; row < (p.row + 1) * c.down; ++row)
      for (std::int64_t column = p.column * c.across; column < (p.column + 1) * c.across; ++column)
        sum += gradY[placeOf({p.plane, row, column, p.lane}, height, width, c.lanes)];
    gradX[i] = sum;
  });
}

cudaError_t launchBilinear(const UpsampleCall& c, const float* x, float* y, cudaStream_t stream) {
  const std::int64_t height = c.height * c.down, width = c.width * c.across;
  return forEach(elementsOf(c) * c.down * c.across, stream, [=] __device__(std::int64_t i) {
    const Pixel p = pixelAt(i, height, width, c.lanes);
    const Taps v = tapsAt(c.height, c.down, p.row), u = tapsAt(c.width, c.across, p.column);
    const auto at = [&](std::int64_t row, std::int64_t column) {
      return x[placeOf({p.plane, row, column, p.lane}, c.height, c.width, c.lanes)];
    };
    const float upper = u.firstShare * at(v.first, u.first) + u.secondShare * at(v.first, u.second);
    const float lower = u.firstShare * at(v.second, u.first) + u.secondShare * at(v.second, u.second);
    y[i] = v.firstShare * upper + v.secondShare * lower;
  });
}

cudaError_t launchBilinearBackward(const UpsampleCall& c, const float* gradY, float* gradX,
                                   cudaStream_t stream) {
  const std::int64_t height = c.height * c.down, width = c.width * c.across;
  return forEach(elementsOf(c), stream, [=] __device__(std::int64_t i) {
    const Pixel p = pixelAt(i, c.height, c.width, c.lanes);
    const Reach rows = reachOf(c.height, c.down, p.row), columns = reachOf(c.width, c.across, p.column);
    float sum = 0;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const float vertical = shareOf(tapsAt(c.height, c.down, row), p.row);
      for (std::int64_t column = columns.begin; column < columns.end; ++column)
        sum += vertical * shareOf(tapsAt(c.width, c.across, column), p.column) *
               gradY[placeOf({p.plane, row, column, p.lane}, height, width, c.lanes)];
    }
    gradX[i] = sum;
  });
}

}  // namespace muster::cuda
