#include "muster/core/backend/cuda/kernels/elementwise.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/channels.cuh"
#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/cuda/kernels/values.cuh"
#include "muster/core/base/random.h"

// The comparisons keep NaN, as on the CPU.

namespace muster::cuda {

cudaError_t launchDropout(const float* x, float* y, const DropoutRule& rule, cudaStream_t stream) {
  const std::int64_t perRow = (rule.features + 3) / 4;
  const Extent indices(perRow), features(rule.features);
  const bool whole = rule.features % kPiece == 0 && holdPieces(x, y);
  return forEachPlace(rule.rows * perRow, rule.rows * perRow * 4, stream, [=] __device__(auto i) {
    const auto epoch = static_cast<std::uint64_t>(rule.position ? rule.position[0] : rule.epoch);
    const std::int64_t first = rule.position ? rule.position[1] : rule.firstExample;
    // Elements 4 * index to 4 * index + 3 of row n use number (first + n) * indices + index of the stream.
    const auto index = static_cast<std::uint64_t>(first * indices + i);
    const auto words = philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                               static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)},
                              rule.key);
    const auto kept = [&](int k, float value) {
      return words[k] < rule.threshold ? 0.0f : value * rule.scale;
    };
    static_assert(kPiece == 4);  // one index of the stream gives the numbers for one piece
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
  if constexpr (fold == Fold::Max) return b > a || b != b ? b : a;  // keeps NaN
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

cudaError_t launchResize(const float* x, const MatrixSize& from, float* y, const MatrixSize& to,
                         cudaStream_t stream) {
  const Extent fromColumns(from.columns), toColumns(to.columns);
  const std::int64_t n = to.rows * to.columns, read = from.rows * from.columns;
  return forEachPlace(n, n > read ? n : read, stream, [=] __device__(auto i) {
    using Index = decltype(i);
    const Index row = i / toColumns, column = i % toColumns;
    const bool there = row < static_cast<Index>(from.rows) && column < fromColumns.as<Index>();
    y[i] = there ? x[row * fromColumns + column] : 0.0f;
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

template <typename X>
cudaError_t addBias(const X* x, const float* bias, float* y, const ChannelShape& shape, bool relu,
                    cudaStream_t stream) {
  const auto finished = [=] __device__(float value) { return relu && value < 0.0f ? 0.0f : value; };
  if (!bias)
    return map(shape.elements(), x, y, stream, [=] __device__(X value) { return finished(valueOf(value)); });
  return forEachInChannels(shape, holdPieces(x, y), holdPieces(bias), stream,
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

cudaError_t launchAddBias(const float* bias, float* y, const ChannelShape& shape, bool relu,
                          cudaStream_t stream) {
  return addBias(y, bias, y, shape, relu, stream);
}

cudaError_t launchAddBiasFromBFloat16(const void* x, const float* bias, float* y, const ChannelShape& shape,
                                      bool relu, cudaStream_t stream) {
  return addBias(static_cast<const __nv_bfloat16*>(x), bias, y, shape, relu, stream);
}

}  // namespace muster::cuda
