#include "muster/core/backend/cuda/kernels/pool2d.h"

#include "muster/core/backend/cuda/kernels/for_each.cuh"

namespace muster::cuda {
namespace {

/// The call's sizes, for dividing and multiplying indices.
struct Windows {
  Extent lanes, height, width, outHeight, outWidth;
  Extent kernel[2], stride[2], padding[2];

  explicit Windows(const PoolCall& p)
      : lanes(p.lanes),
        height(p.height),
        width(p.width),
        outHeight(p.outHeight),
        outWidth(p.outWidth),
        kernel{Extent(p.kernel[0]), Extent(p.kernel[1])},
        stride{Extent(p.stride[0]), Extent(p.stride[1])},
        padding{Extent(p.padding[0]), Extent(p.padding[1])} {}
};

/// Calls f(kernel position, element of x) for the pixels of output i's window inside the input, row by row.
template <typename Index, typename F>
__device__ void forEachPixel(const Windows& p, Index i, F f) {
  const Index lane = i % p.lanes, pixel = i / p.lanes, line = pixel / p.outWidth;
  const Index ow = pixel % p.outWidth, oh = line % p.outHeight, plane = line / p.outHeight;
  const Index row = oh * p.stride[0] - p.padding[0].as<Index>();
  const Index column = ow * p.stride[1] - p.padding[1].as<Index>();
  const Index across = p.kernel[1].as<Index>(), height = p.height.as<Index>(), width = p.width.as<Index>();
  for (Index r = row < 0 ? -row : 0; r < p.kernel[0].as<Index>() && row + r < height; ++r)
    for (Index c = column < 0 ? -column : 0; c < across && column + c < width; ++c)
      f(r * across + c, ((plane * height + row + r) * width + column + c) * p.lanes + lane);
}

/// Calls f(kernel position, output) for the windows that contain element i of x, in order.
/// @param apart  no two windows overlap, so there is at most one.
template <bool apart, typename Index, typename F>
__device__ void forEachWindow(const Windows& p, Index i, F f) {
  const Index lane = i % p.lanes, pixel = i / p.lanes, line = pixel / p.width;
  const Index plane = line / p.height;
  const Index row = line % p.height + p.padding[0].as<Index>();  // in the padded image
  const Index column = pixel % p.width + p.padding[1].as<Index>();
  const Index down = p.kernel[0].as<Index>(), across = p.kernel[1].as<Index>();
  const Index outHeight = p.outHeight.as<Index>(), outWidth = p.outWidth.as<Index>();
  const auto call = [&](Index oh, Index ow) {
    f((row - oh * p.stride[0]) * across + (column - ow * p.stride[1]),
      ((plane * outHeight + oh) * outWidth + ow) * p.lanes + lane);
  };
  if constexpr (apart) {
    const Index oh = row / p.stride[0], ow = column / p.stride[1];
    const bool inside = oh < outHeight && row - oh * p.stride[0] < down && ow < outWidth &&
                        column - ow * p.stride[1] < across;
    if (inside) call(oh, ow);
  } else {
    const Index firstRow = row < down ? 0 : (row - down) / p.stride[0] + 1;
    const Index firstColumn = column < across ? 0 : (column - across) / p.stride[1] + 1;
    for (Index oh = firstRow; oh < outHeight && oh * p.stride[0] <= row; ++oh)
      for (Index ow = firstColumn; ow < outWidth && ow * p.stride[1] <= column; ++ow) call(oh, ow);
  }
}

std::int64_t inputs(const PoolCall& p) {
  return p.planes * p.height * p.width * p.lanes;
}
std::int64_t outputs(const PoolCall& p) {
  return p.planes * p.outHeight * p.outWidth * p.lanes;
}
/// An upper bound of all indices and sizes computed.
std::int64_t largest(const PoolCall& p) {
  const std::int64_t sizes[] = {
      inputs(p),   outputs(p), p.height + 2 * p.padding[0], p.width + 2 * p.padding[1],
      p.stride[0], p.stride[1]};
  std::int64_t most = 0;
  for (const std::int64_t size : sizes) most = size > most ? size : most;
  return most;
}

bool areApart(const PoolCall& p) {
  return p.stride[0] >= p.kernel[0] && p.stride[1] >= p.kernel[1];
}

/// Adjacent windows of two by two pixels, rows of even length, no padding.
bool areSquares(const PoolCall& p) {
  const auto both = [](const std::int64_t(&pair)[2], std::int64_t value) {
    return pair[0] == value && pair[1] == value;
  };
  return both(p.kernel, 2) && both(p.stride, 2) && both(p.padding, 0) && p.lanes == 1 && p.width % 2 == 0;
}
bool holdPairs(const float* from) {
  return reinterpret_cast<std::uintptr_t>(from) % alignof(Piece<float, 2>) == 0;
}

/// Whether `value` replaces the maximum `best`: it is larger, or the first NaN.
__device__ bool wins(float value, float best) {
  return !(value <= best) && best == best;
}

template <typename Index>
cudaError_t maxOfSquares(const PoolCall& p, const float* x, float* y, Index* winners, cudaStream_t stream) {
  const Extent outWidth(p.outWidth), outHeight(p.outHeight), height(p.height), width(p.width);
  return forEachPlace(outputs(p), inputs(p), stream, [=] __device__(auto i) {
    const auto line = i / outWidth, plane = line / outHeight;
    const auto row = plane * height + 2 * (line - plane * outHeight);
    const auto from = row * width + 2 * (i - line * outWidth), below = from + width.as<decltype(i)>();
    const auto upper = read<2>(x + from), lower = read<2>(x + below);
    float best = upper.at[0];
    int winner = 0;
    const auto next = [&](float value, int place) {
      if (!wins(value, best)) return;
      best = value;
      winner = place;
    };
    next(upper.at[1], 1);
    next(lower.at[0], 2);
    next(lower.at[1], 3);
    y[i] = best;
    winners[i] = static_cast<Index>(winner);
  });
}

/// One thread per window, and one per pair of elements in a last row outside all windows.
template <typename Index>
cudaError_t gradientOfSquares(const PoolCall& p, const float* gradY, const Index* winners, float* gradX,
                              cudaStream_t stream) {
  const std::int64_t lines = (p.height + 1) / 2;
  const Extent outWidth(p.outWidth), outHeight(p.outHeight), height(p.height), width(p.width), all(lines);
  return forEachPlace(p.planes * lines * p.outWidth, inputs(p), stream, [=] __device__(auto i) {
    const auto line = i / outWidth, column = i - line * outWidth, plane = line / all, oh = line - plane * all;
    const auto to = (plane * height + 2 * oh) * width + 2 * column, below = to + width.as<decltype(i)>();
    if (oh == outHeight.as<decltype(oh)>()) {
      write(gradX + to, Piece<float, 2>{});
      return;
    }
    const auto output = (plane * outHeight + oh) * outWidth + column;
    const float grad = 0.0f + gradY[output];  // -0 becomes 0, as in the other kernels' sums
    const auto winner = winners[output];
    const auto of = [&](int place) { return winner == place ? grad : 0.0f; };
    write(gradX + to, Piece<float, 2>{of(0), of(1)});
    write(gradX + below, Piece<float, 2>{of(2), of(3)});
  });
}

template <bool apart, typename Index>
cudaError_t gradientOfMax(const PoolCall& p, const float* gradY, const Index* winners, float* gradX,
                          cudaStream_t stream) {
  const Windows windows(p);
  const bool whole = p.lanes % kPiece == 0 && holdPieces(gradY, winners, gradX);
  return forEachPieceAndPlace(inputs(p), largest(p), whole, stream, [=] __device__(auto i, auto width) {
    Piece<float, width> sums{};
    forEachWindow<apart>(windows, i, [&](auto place, auto output) {
      const auto winner = read<width>(winners + output);
      const auto grads = read<width>(gradY + output);
#pragma unroll
      for (int k = 0; k < width; ++k)
        if (winner.at[k] == place) sums.at[k] += grads.at[k];
    });
    write(gradX + i, sums);
  });
}

template <bool apart>
cudaError_t gradientOfAverage(const PoolCall& p, const float* gradY, float* gradX, cudaStream_t stream) {
  const auto places = static_cast<float>(p.kernel[0] * p.kernel[1]);
  const Windows windows(p);
  const bool whole = p.lanes % kPiece == 0 && holdPieces(gradY, gradX);
  return forEachPieceAndPlace(inputs(p), largest(p), whole, stream, [=] __device__(auto i, auto width) {
    Piece<float, width> sums{};
    forEachWindow<apart>(windows, i, [&](auto, auto output) {
      const auto grads = read<width>(gradY + output);
#pragma unroll
      for (int k = 0; k < width; ++k) sums.at[k] += grads.at[k] / places;
    });
    write(gradX + i, sums);
  });
}

}  // namespace

template <typename Index>
cudaError_t launchMaxPool(const PoolCall& p, const float* x, float* y, Index* winners, cudaStream_t stream) {
  if (areSquares(p) && holdPairs(x)) return maxOfSquares(p, x, y, winners, stream);
  const Windows windows(p);
  const bool whole = p.lanes % kPiece == 0 && holdPieces(x, y, winners);
  return forEachPieceAndPlace(outputs(p), largest(p), whole, stream, [=] __device__(auto i, auto width) {
    Piece<float, width> best{};
    Piece<Index, width> winner{};
    bool first = true;
    forEachPixel(windows, i, [&](auto place, auto pixel) {
      const auto values = read<width>(x + pixel);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        if (!first && !wins(values.at[k], best.at[k])) continue;
        best.at[k] = values.at[k];
        winner.at[k] = static_cast<Index>(place);
      }
      first = false;
    });
    write(y + i, best);
    write(winners + i, winner);
  });
}

template <typename Index>
cudaError_t launchMaxPoolBackward(const PoolCall& p, const float* gradY, const Index* winners, float* gradX,
                                  cudaStream_t stream) {
  if (areSquares(p) && holdPairs(gradX)) return gradientOfSquares(p, gradY, winners, gradX, stream);
  return areApart(p) ? gradientOfMax<true>(p, gradY, winners, gradX, stream)
                     : gradientOfMax<false>(p, gradY, winners, gradX, stream);
}

cudaError_t launchAveragePool(const PoolCall& p, const float* x, float* y, cudaStream_t stream) {
  const auto places = static_cast<float>(p.kernel[0] * p.kernel[1]);
  const Windows windows(p);
  const bool whole = p.lanes % kPiece == 0 && holdPieces(x, y);
  return forEachPieceAndPlace(outputs(p), largest(p), whole, stream, [=] __device__(auto i, auto width) {
    Piece<float, width> sums{};
    forEachPixel(windows, i, [&](auto, auto pixel) {
      const auto values = read<width>(x + pixel);
#pragma unroll
      for (int k = 0; k < width; ++k) sums.at[k] += values.at[k];
    });
#pragma unroll
    for (int k = 0; k < width; ++k) sums.at[k] /= places;
    write(y + i, sums);
  });
}

cudaError_t launchAveragePoolBackward(const PoolCall& p, const float* gradY, float* gradX,
                                      cudaStream_t stream) {
  return areApart(p) ? gradientOfAverage<true>(p, gradY, gradX, stream)
                     : gradientOfAverage<false>(p, gradY, gradX, stream);
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
