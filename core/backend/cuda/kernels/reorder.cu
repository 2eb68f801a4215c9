#include "muster/core/backend/cuda/kernels/reorder.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/cuda/kernels/values.cuh"

namespace muster::cuda {
namespace {

constexpr int kLayoutBlock = 16;

/// The sizes of an activation, for dividing and multiplying indices.
struct ActivationSizes {
  Extent samples, channels, pixels, channelBlocks;
  explicit ActivationSizes(const ReorderShape& s)
      : samples(s.samples),
        channels(s.channels),
        pixels(s.pixels),
        channelBlocks((s.channels + kLayoutBlock - 1) / kLayoutBlock) {}
};

template <typename Index>
struct Element {
  Index n, c, p;  // sample, channel, pixel
};

/// The index of an element in memory; layouts are numbered as in `Layout`.
template <typename Index>
__device__ Index placeIn(int layout, const Element<Index>& e, const ActivationSizes& s) {
  switch (layout) {
    case 0:
      return (e.n * s.channels + e.c) * s.pixels + e.p;
    case 1:
      return (e.n * s.pixels + e.p) * s.channels + e.c;
    case 2:
      return ((e.n * s.channelBlocks + e.c / kLayoutBlock) * s.pixels + e.p) * kLayoutBlock +
             e.c % kLayoutBlock;
    default:
      return ((e.n / kLayoutBlock * s.channels + e.c) * s.pixels + e.p) * kLayoutBlock + e.n % kLayoutBlock;
  }
}

/// The element at an index in memory; a sample or channel out of range is padding.
template <typename Index>
__device__ Element<Index> elementAt(int layout, Index place, const ActivationSizes& s) {
  if (layout == 0) return {place / s.pixels / s.channels, place / s.pixels % s.channels, place % s.pixels};
  if (layout == 1) return {place / s.channels / s.pixels, place % s.channels, place / s.channels % s.pixels};
  const Index inBlock = place % kLayoutBlock, line = place / kLayoutBlock;
  const Index p = line % s.pixels, block = line / s.pixels;
  if (layout == 2) return {block / s.channelBlocks, block % s.channelBlocks * kLayoutBlock + inBlock, p};
  return {block / s.channels * kLayoutBlock + inBlock, block % s.channels, p};
}

constexpr int kTile = 1024, kTurns = kTile / kBlockThreads;  // elements of a tile, of a thread

/// Matrices [rows, columns] in tiles, one block a tile.
struct Tiles {
  Extent rows, columns;          // of a matrix
  Extent tileRows, tileColumns;  // of a tile
  Extent down, across;           // tiles of a matrix
};

/// The size of the fewest equal parts of `all` with at most `most` each.
std::int64_t partOf(std::int64_t all, std::int64_t most) {
  const std::int64_t parts = (all + most - 1) / most;
  return (all + parts - 1) / parts;
}

Tiles tilesFor(std::int64_t rows, std::int64_t columns) {
  // A whole warp reads and writes a side of 32. If a matrix is narrower, its lines are adjacent in memory.
  const std::int64_t high = rows < 32 ? rows : partOf(rows, columns < 32 ? kTile / columns : 32);
  const std::int64_t wide = columns < 32 ? columns : partOf(columns, rows < 32 ? kTile / rows : 32);
  return {Extent(rows),
          Extent(columns),
          Extent(high),
          Extent(wide),
          Extent((rows + high - 1) / high),
          Extent((columns + wide - 1) / wide)};
}

/// y [matrices, columns, rows] = x [matrices, rows, columns], through shared memory, so that both reads and
/// writes access adjacent elements.
template <typename Index, typename X, typename Y>
__global__ void __launch_bounds__(kBlockThreads) transposeKernel(const X* x, Y* y, Tiles t) {
  __shared__ float tile[kTile + kTile / 2];  // lines of odd length avoid bank conflicts
  const auto block = static_cast<Index>(blockIdx.x);
  const Index strip = block / t.across, matrix = strip / t.down;
  const Index firstColumn = block % t.across * t.tileColumns, firstRow = strip % t.down * t.tileRows;
  const Index begin = matrix * t.rows * t.columns;
  const int high = t.tileRows.as<int>(), wide = t.tileColumns.as<int>(), line = wide | 1;
  const Index rows = t.rows.as<Index>(), columns = t.columns.as<Index>();
  const auto inside = [&](int row, int column) {
    return row < high && column < wide && firstRow + row < rows && firstColumn + column < columns;
  };
  float values[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kBlockThreads + static_cast<int>(threadIdx.x);
    const int row = i / t.tileColumns, column = i % t.tileColumns;
    if (inside(row, column))
      values[turn] = valueOf(x[begin + ((firstRow + row) * columns + firstColumn + column)]);
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kBlockThreads + static_cast<int>(threadIdx.x);
    const int row = i / t.tileColumns, column = i % t.tileColumns;
    if (inside(row, column)) tile[row * line + column] = values[turn];
  }
  __syncthreads();
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kBlockThreads + static_cast<int>(threadIdx.x);
    const int column = i / t.tileRows, row = i % t.tileRows;
    if (inside(row, column))
      y[begin + ((firstColumn + column) * rows + firstRow + row)] = rounded<Y>(tile[row * line + column]);
  }
}

template <typename X, typename Y>
cudaError_t transpose(const X* x, Y* y, std::int64_t matrices, std::int64_t rows, std::int64_t columns,
                      cudaStream_t stream) {
  const std::int64_t n = matrices * rows * columns;
  if (n == 0) return cudaSuccess;
  const Tiles tiles = tilesFor(rows, columns);
  const auto blocks =
      static_cast<unsigned>(matrices * tiles.down.as<std::int64_t>() * tiles.across.as<std::int64_t>());
  if (n <= kMostNarrow)
    transposeKernel<std::int32_t><<<blocks, kBlockThreads, 0, stream>>>(x, y, tiles);
  else
    transposeKernel<std::int64_t><<<blocks, kBlockThreads, 0, stream>>>(x, y, tiles);
  return cudaGetLastError();
}

/// Transposes each sample's matrix if the reorder is such a transposition. @return whether it is.
template <typename X, typename Y>
bool transposed(const X* x, Y* y, const ReorderShape& s, cudaStream_t stream, cudaError_t& error) {
  if (s.from == 0 && s.to == 1)
    error = transpose(x, y, s.samples, s.channels, s.pixels, stream);
  else if (s.from == 1 && s.to == 0)
    error = transpose(x, y, s.samples, s.pixels, s.channels, stream);
  else
    return false;
  return true;
}

}  // namespace

template <typename T>
cudaError_t launchReorder(const T* x, float* y, const ReorderShape& s, cudaStream_t stream) {
  if (cudaError_t error = cudaSuccess; transposed(x, y, s, stream, error)) return error;
  const ActivationSizes sizes(s);
  const int from = s.from, to = s.to;
  // Either side may be padded to blocks of samples or channels.
  const std::int64_t most = (s.samples + kLayoutBlock) * (s.channels + kLayoutBlock) * s.pixels;
  return forEachPlace(s.storage, most, stream, [=] __device__(auto place) {
    const auto e = elementAt(to, place, sizes);
    using Index = decltype(place);
    const bool padding = e.n >= sizes.samples.as<Index>() || e.c >= sizes.channels.as<Index>();
    y[place] = padding ? 0.0f : valueOf(x[placeIn(from, e, sizes)]);
  });
}
template cudaError_t launchReorder<float>(const float*, float*, const ReorderShape&, cudaStream_t);
template cudaError_t launchReorder<std::uint8_t>(const std::uint8_t*, float*, const ReorderShape&,
                                                 cudaStream_t);

cudaError_t launchReorderToBFloat16(const float* x, void* y, const ReorderShape& s, cudaStream_t stream) {
  cudaError_t error = cudaErrorInvalidValue;
  transposed(x, static_cast<__nv_bfloat16*>(y), s, stream, error);
  return error;
}

cudaError_t launchReorderFromBFloat16(const void* x, float* y, const ReorderShape& s, cudaStream_t stream) {
  cudaError_t error = cudaErrorInvalidValue;
  transposed(static_cast<const __nv_bfloat16*>(x), y, s, stream, error);
  return error;
}

cudaError_t launchLoadBytes(const std::uint8_t* x, float* y, std::int64_t n, cudaStream_t stream) {
  return map(n, x, y, stream, [=] __device__(std::uint8_t value) { return valueOf(value); });
}

cudaError_t launchToBFloat16(const float* x, void* y, std::int64_t n, cudaStream_t stream) {
  return map(n, x, static_cast<__nv_bfloat16*>(y), stream,
             [=] __device__(float value) { return __float2bfloat16_rn(value); });
}

cudaError_t launchFromBFloat16(const void* x, float* y, std::int64_t n, cudaStream_t stream) {
  return map(n, static_cast<const __nv_bfloat16*>(x), y, stream,
             [=] __device__(__nv_bfloat16 value) { return __bfloat162float(value); });
}

}  // namespace muster::cuda
