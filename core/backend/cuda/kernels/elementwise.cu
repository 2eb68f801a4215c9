#include "muster/core/backend/cuda/kernels/elementwise.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "muster/core/backend/cuda/kernels/channels.cuh"
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
  return map(n, x, y, stream, [=] __device__(float value) { return forwardOf<function>(value, slope); });
}

template <Function function>
cudaError_t backward(const float* kept, const float* gradY, float* gradX, std::int64_t n, float slope,
                     cudaStream_t stream) {
  return map(n, kept, gradY, gradX, stream,
             [=] __device__(float value, float grad) { return backwardOf<function>(value, grad, slope); });
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

constexpr int kLayoutBlock = 16;

/// The sizes of an activation, to divide and multiply places by.
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

/// Where an element lies, by `Layout`'s numbers.
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

/// Which element lies at a place; one beyond the samples or channels is padding.
template <typename Index>
__device__ Element<Index> elementAt(int layout, Index place, const ActivationSizes& s) {
  if (layout == 0) return {place / s.pixels / s.channels, place / s.pixels % s.channels, place % s.pixels};
  if (layout == 1) return {place / s.channels / s.pixels, place % s.channels, place / s.channels % s.pixels};
  const Index inBlock = place % kLayoutBlock, line = place / kLayoutBlock;
  const Index p = line % s.pixels, block = line / s.pixels;
  if (layout == 2) return {block / s.channelBlocks, block % s.channelBlocks * kLayoutBlock + inBlock, p};
  return {block / s.channels * kLayoutBlock + inBlock, block % s.channels, p};
}

__device__ float valueOf(float x) {
  return x;
}
__device__ float valueOf(std::uint8_t x) {
  return __fdiv_rn(static_cast<float>(x), 255.0f);
}
__device__ float valueOf(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

template <typename T>
__device__ T rounded(float x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(x);
  else
    return x;
}

constexpr int kTile = 1024, kTurns = kTile / kBlockThreads;  // places of a tile, of a thread

/// Matrices [rows, columns], cut into tiles, a block's work each.
struct Tiles {
  Extent rows, columns;          // of a matrix
  Extent tileRows, tileColumns;  // of a tile
  Extent down, across;           // tiles of a matrix
};

/// As many parts as hold `most` each, all about as large as each other.
std::int64_t partOf(std::int64_t all, std::int64_t most) {
  const std::int64_t parts = (all + most - 1) / most;
  return (all + parts - 1) / parts;
}

Tiles tilesFor(std::int64_t rows, std::int64_t columns) {
  // A side of 32 is read and written by whole warps; what is shorter has its lines side by side.
  const std::int64_t high = rows < 32 ? rows : partOf(rows, columns < 32 ? kTile / columns : 32);
  const std::int64_t wide = columns < 32 ? columns : partOf(columns, rows < 32 ? kTile / rows : 32);
  return {Extent(rows),
          Extent(columns),
          Extent(high),
          Extent(wide),
          Extent((rows + high - 1) / high),
          Extent((columns + wide - 1) / wide)};
}

/// y [matrices, columns, rows] = x [matrices, rows, columns], through memory that a block shares, so that
/// both sides are read and written along their lines.
template <typename Index, typename X, typename Y>
__global__ void __launch_bounds__(kBlockThreads) transposeKernel(const X* x, Y* y, Tiles t) {
  __shared__ float tile[kTile + kTile / 2];  // lines of an odd length, against conflicts
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
  // The end of the last places' classes lies behind the tensor.
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

cudaError_t launchDropout(const float* x, float* y, const DropoutRule& rule, cudaStream_t stream) {
  const std::int64_t perRow = (rule.features + 3) / 4;
  const Extent indices(perRow), features(rule.features);
  const bool whole = rule.features % kPiece == 0 && holdPieces(x, y);
  return forEachPlace(rule.rows * perRow, rule.rows * perRow * 4, stream, [=] __device__(auto i) {
    const auto epoch = static_cast<std::uint64_t>(rule.position ? rule.position[0] : rule.epoch);
    const std::int64_t first = rule.position ? rule.position[1] : rule.firstExample;
    // Row n and its index-th four elements: number (first + n) * indices + index of the stream.
    const auto index = static_cast<std::uint64_t>(first * indices + i);
    const auto words = philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                               static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)},
                              rule.key);
    const auto kept = [&](int k, float value) {
      return words[k] < rule.threshold ? 0.0f : value * rule.scale;
    };
    static_assert(kPiece == 4);  // a piece is what an index decides
    if (whole) {
      auto piece = read<kPiece>(x + 4 * i);
#pragma unroll
      for (int k = 0; k < 4; ++k) piece.at[k] = kept(k, piece.at[k]);
      write(y + 4 * i, piece);
      return;
    }
    const auto e = i % indices * 4, row = i / indices * features;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (e + k < features.as<decltype(i)>()) y[row + e + k] = kept(k, x[row + e + k]);
  });
}

template <typename T>
cudaError_t launchAxpy(double a, const T* x, T* y, std::int64_t n, cudaStream_t stream) {
  return map(n, x, y, y, stream, [=] __device__(T from, T to) { return static_cast<T>(to + a * from); });
}
template cudaError_t launchAxpy<float>(double, const float*, float*, std::int64_t, cudaStream_t);
template cudaError_t launchAxpy<double>(double, const double*, double*, std::int64_t, cudaStream_t);

namespace {

template <typename T>
bool allHoldPieces(const Inputs<T>& inputs) {
  for (int input = 0; input < inputs.count; ++input)
    if (!holdPieces(inputs.at[input])) return false;
  return true;
}

}  // namespace

template <typename T>
cudaError_t launchSum(const Inputs<T>& inputs, T* out, std::int64_t n, cudaStream_t stream) {
  const bool whole = allHoldPieces(inputs) && holdPieces(out);
  return forEachPiece(n, whole, stream, [=] __device__(auto i, auto width) {
    double sums[width];
    auto piece = read<width>(inputs.at[0] + i);
#pragma unroll
    for (int k = 0; k < width; ++k) sums[k] = piece.at[k];
    for (int input = 1; input < inputs.count; ++input) {
      piece = read<width>(inputs.at[input] + i);
#pragma unroll
      for (int k = 0; k < width; ++k) sums[k] += piece.at[k];
    }
#pragma unroll
    for (int k = 0; k < width; ++k) piece.at[k] = static_cast<T>(sums[k]);
    write(out + i, piece);
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
  const bool whole = allHoldPieces(x) && holdPieces(y);
  return forEachPiece(n, whole, stream, [=] __device__(auto i, auto width) {
    auto values = read<width>(x.at[0] + i);
    for (int input = 1; input < x.count; ++input) {
      const auto next = read<width>(x.at[input] + i);
#pragma unroll
      for (int k = 0; k < width; ++k) values.at[k] = folded<fold>(values.at[k], next.at[k]);
    }
#pragma unroll
    for (int k = 0; k < width; ++k) values.at[k] = factor * values.at[k];
    write(y + i, values);
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
  const bool whole = allHoldPieces(inputs) && holdPieces(x, y);
  return forEachPiece(n, whole, stream, [=] __device__(auto i, auto width) {
    auto values = read<width>(x + i);
    for (int input = 0; input < inputs.count; ++input) {
      if (input == skipped) continue;
      const auto next = read<width>(inputs.at[input] + i);
#pragma unroll
      for (int k = 0; k < width; ++k) values.at[k] *= next.at[k];
    }
    write(y + i, values);
  });
}

cudaError_t launchWhereLargest(const Inputs<float>& inputs, int own, const float* mine, const float* x,
                               float* y, std::int64_t n, cudaStream_t stream) {
  const bool whole = allHoldPieces(inputs) && holdPieces(mine, x, y);
  return forEachPiece(n, whole, stream, [=] __device__(auto i, auto width) {
    const auto values = read<width>(mine + i);
    bool largest[width];
#pragma unroll
    for (int k = 0; k < width; ++k) largest[k] = true;
    for (int input = 0; input < inputs.count; ++input) {
      const auto others = read<width>(inputs.at[input] + i);
#pragma unroll
      for (int k = 0; k < width; ++k)
        largest[k] =
            largest[k] && (input < own ? values.at[k] > others.at[k] : !(others.at[k] > values.at[k]));
    }
    auto piece = read<width>(x + i);
#pragma unroll
    for (int k = 0; k < width; ++k)
      if (!largest[k]) piece.at[k] = 0.0f;
    write(y + i, piece);
  });
}

cudaError_t launchScale(float factor, const float* x, float* y, std::int64_t n, cudaStream_t stream) {
  return map(n, x, y, stream, [=] __device__(float value) { return factor * value; });
}

cudaError_t launchCopyRuns(const float* x, std::int64_t rowX, float* y, std::int64_t rowY, std::int64_t outer,
                           std::int64_t run, cudaStream_t stream) {
  const Extent each(run), fromX(rowX), fromY(rowY);
  const bool whole = holdPieces(x, y) && run % kPiece == 0 && rowX % kPiece == 0 && rowY % kPiece == 0;
  const std::int64_t most = outer * (rowX > rowY ? rowX : rowY);
  return forEachPieceAndPlace(outer * run, most, whole, stream, [=] __device__(auto i, auto width) {
    const auto row = i / each, place = i % each;
    const auto piece = read<width>(x + (row * fromX + place));
    write(y + (row * fromY + place), piece);
  });
}

cudaError_t launchWiden(const std::uint8_t* x, std::int64_t* y, std::int64_t n, cudaStream_t stream) {
  return map(n, x, y, stream, [=] __device__(std::uint8_t value) { return value; });
}

cudaError_t launchClamp(float* x, float limit, std::int64_t n, cudaStream_t stream) {
  return map(n, x, x, stream, [=] __device__(float value) {
    return value < -limit ? -limit : value > limit ? limit : value;
  });
}

namespace {

/// Whether a reorder is a transposition of each sample's matrix, which is then done.
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
  // Either may be padded, samples or channels, to blocks.
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

namespace {

template <typename X>
cudaError_t addBias(const X* x, const float* bias, float* y, const ChannelPlaces& places, bool relu,
                    cudaStream_t stream) {
  const auto finished = [=] __device__(float value) { return relu && value < 0.0f ? 0.0f : value; };
  if (!bias) return map(places.n, x, y, stream, [=] __device__(X value) { return finished(valueOf(value)); });
  return forEachInChannels(places, holdPieces(x, y), holdPieces(bias), stream,
                           [=] __device__(auto i, auto channel, auto width) {
                             const auto values = read<width>(x + i);
                             auto results = channel.of(bias);
#pragma unroll
                             for (int k = 0; k < width; ++k)
                               results.at[k] = finished(valueOf(values.at[k]) + results.at[k]);
                             write(y + i, results);
                           });
}

}  // namespace

cudaError_t launchAddBias(const float* bias, float* y, std::int64_t n, std::int64_t channels,
                          std::int64_t pixels, bool relu, cudaStream_t stream) {
  return addBias(y, bias, y, {n, channels, pixels}, relu, stream);
}

cudaError_t launchAddBiasToBFloat16(const void* x, const float* bias, float* y, std::int64_t n,
                                    std::int64_t channels, std::int64_t pixels, bool relu,
                                    cudaStream_t stream) {
  return addBias(static_cast<const __nv_bfloat16*>(x), bias, y, {n, channels, pixels}, relu, stream);
}

}  // namespace muster::cuda
