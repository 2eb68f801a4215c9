#include "muster/core/backend/cuda/kernels/image.h"

#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/taps.h"

namespace muster::cuda {
namespace {

/// Planes [height, width, lanes].
struct Planes {
  Extent height, width, lanes;
  std::int64_t elements;
  Planes(std::int64_t planes, std::int64_t h, std::int64_t w, std::int64_t l)
      : height(h), width(w), lanes(l), elements(planes * h * w * l) {}
};

template <typename Index>
struct Pixel {
  Index plane, row, column, lane;
};
template <typename Index>
__device__ Pixel<Index> pixelAt(Index i, const Planes& p) {
  const Index pixel = i / p.lanes, row = pixel / p.width;
  return {row / p.height, row % p.height, pixel % p.width, i % p.lanes};
}
template <typename Index>
__device__ Index placeOf(const Pixel<Index>& at, const Planes& p) {
  return ((at.plane * p.height + at.row) * p.width + at.column) * p.lanes + at.lane;
}

Planes smallOf(const UpsampleCall& c) {
  return {c.planes, c.height, c.width, c.lanes};
}
Planes largeOf(const UpsampleCall& c) {
  return {c.planes, c.height * c.down, c.width * c.across, c.lanes};
}
Planes insideOf(const PadCall& c) {
  return {c.planes, c.height, c.width, c.lanes};
}
Planes paddedOf(const PadCall& c) {
  return {c.planes, c.top + c.height + c.bottom, c.left + c.width + c.right, c.lanes};
}

/// Calls f(i, width) for all elements; lanes are in pieces if possible.
template <typename F>
cudaError_t forEachLane(std::int64_t n, const Planes& large, const float* x, const float* y,
                        cudaStream_t stream, F f) {
  const bool whole = large.lanes.as<std::int64_t>() % kPiece == 0 && holdPieces(x, y);
  return forEachPieceAndPlace(n, large.elements, whole, stream, f);
}

}  // namespace

cudaError_t launchPad(const PadCall& c, const float* x, float* y, cudaStream_t stream) {
  const Planes inner = insideOf(c), outer = paddedOf(c);
  const Extent top(c.top), left(c.left);
  return forEachLane(outer.elements, outer, x, y, stream, [=] __device__(auto i, auto width) {
    using Index = decltype(i);
    auto at = pixelAt(i, outer);
    at.row -= top.as<Index>();
    at.column -= left.as<Index>();
    const bool inside = at.row >= 0 && at.row < inner.height.as<Index>() && at.column >= 0 &&
                        at.column < inner.width.as<Index>();
    Piece<float, width> values{};
    if (inside) values = read<width>(x + placeOf(at, inner));
    write(y + i, values);
  });
}

cudaError_t launchPadBackward(const PadCall& c, const float* gradY, float* gradX, cudaStream_t stream) {
  const Planes inner = insideOf(c), outer = paddedOf(c);
  const Extent top(c.top), left(c.left);
  return forEachLane(inner.elements, outer, gradY, gradX, stream, [=] __device__(auto i, auto width) {
    auto at = pixelAt(i, inner);
    at.row += top.as<decltype(i)>();
    at.column += left.as<decltype(i)>();
    const auto values = read<width>(gradY + placeOf(at, outer));
    write(gradX + i, values);
  });
}

cudaError_t launchNearest(const UpsampleCall& c, const float* x, float* y, cudaStream_t stream) {
  const Planes small = smallOf(c), large = largeOf(c);
  const Extent down(c.down), across(c.across);
  return forEachLane(large.elements, large, x, y, stream, [=] __device__(auto i, auto width) {
    auto at = pixelAt(i, large);
    at.row = at.row / down;
    at.column = at.column / across;
    const auto values = read<width>(x + placeOf(at, small));
    write(y + i, values);
  });
}

cudaError_t launchNearestBackward(const UpsampleCall& c, const float* gradY, float* gradX,
                                  cudaStream_t stream) {
  const Planes small = smallOf(c), large = largeOf(c);
  const Extent down(c.down), across(c.across);
  return forEachLane(small.elements, large, gradY, gradX, stream, [=] __device__(auto i, auto width) {
    const auto at = pixelAt(i, small);
    Piece<float, width> sums{};
    for (auto row = at.row * down; row < (at.row + 1) * down; ++row)
      for (auto column = at.column * across; column < (at.column + 1) * across; ++column) {
        const auto grads =
            read<width>(gradY + placeOf(Pixel<decltype(i)>{at.plane, row, column, at.lane}, large));
#pragma unroll
        for (int k = 0; k < width; ++k) sums.at[k] += grads.at[k];
      }
    write(gradX + i, sums);
  });
}

cudaError_t launchBilinear(const UpsampleCall& c, const float* x, float* y, cudaStream_t stream) {
  const Planes small = smallOf(c), large = largeOf(c);
  return forEachLane(large.elements, large, x, y, stream, [=] __device__(auto i, auto width) {
    using Index = decltype(i);
    const auto at = pixelAt(i, large);
    const Taps v = tapsAt(c.height, c.down, at.row), u = tapsAt(c.width, c.across, at.column);
    const auto from = [&](std::int64_t row, std::int64_t column) {
      return read<width>(
          x + placeOf(Pixel<Index>{at.plane, static_cast<Index>(row), static_cast<Index>(column), at.lane},
                      small));
    };
    const auto a = from(v.first, u.first), b = from(v.first, u.second);
    const auto e = from(v.second, u.first), f = from(v.second, u.second);
    Piece<float, width> values;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float upper = u.firstShare * a.at[k] + u.secondShare * b.at[k];
      const float lower = u.firstShare * e.at[k] + u.secondShare * f.at[k];
      values.at[k] = v.firstShare * upper + v.secondShare * lower;
    }
    write(y + i, values);
  });
}

cudaError_t launchBilinearBackward(const UpsampleCall& c, const float* gradY, float* gradX,
                                   cudaStream_t stream) {
  const Planes small = smallOf(c), large = largeOf(c);
  return forEachLane(small.elements, large, gradY, gradX, stream, [=] __device__(auto i, auto width) {
    using Index = decltype(i);
    const auto at = pixelAt(i, small);
    const Reach rows = reachOf(c.height, c.down, at.row), columns = reachOf(c.width, c.across, at.column);
    Piece<float, width> sums{};
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const float vertical = shareOf(tapsAt(c.height, c.down, row), at.row);
      for (std::int64_t column = columns.begin; column < columns.end; ++column) {
        const float share = vertical * shareOf(tapsAt(c.width, c.across, column), at.column);
        const auto grads = read<width>(gradY + placeOf(Pixel<Index>{at.plane, static_cast<Index>(row),
                                                                    static_cast<Index>(column), at.lane},
                                                       large));
#pragma unroll
        for (int k = 0; k < width; ++k) sums.at[k] += share * grads.at[k];
      }
    }
    write(gradX + i, sums);
  });
}

}  // namespace muster::cuda
