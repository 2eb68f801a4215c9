#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "muster/core/backend/cuda/kernels/launch.h"
#include "muster/core/backend/extent.h"

// A thread handles one element or four adjacent elements. 16-byte reads by all threads saturate the memory,
// and many small blocks keep every multiprocessor in use.

namespace muster::cuda {

/// One block for each range of elements. The limit of 2^31 - 1 blocks exceeds any GPU's memory.
constexpr unsigned blocksForAll(std::int64_t elements, std::int64_t elementsPerBlock = kBlockThreads) {
  return static_cast<unsigned>((elements + elementsPerBlock - 1) / elementsPerBlock);
}

/// Maximum elements for 32-bit indices, including the indices of unused threads in the last block.
inline constexpr std::int64_t kMostNarrow = 0x7fffffff - kBlockThreads;

template <typename Index>
__device__ Index threadInGrid() {
  return static_cast<Index>(blockIdx.x) * kBlockThreads + static_cast<Index>(threadIdx.x);
}

/// Calls f(i) for each i below n.
template <typename Index, typename F>
__global__ void __launch_bounds__(kBlockThreads) forEachKernel(Index n, F f) {
  const auto i = threadInGrid<Index>();
  if (i < n) f(i);
}

template <typename Index, typename F>
cudaError_t launchForEach(std::int64_t n, cudaStream_t stream, F f) {
  if (n <= 0) return cudaSuccess;
  forEachKernel<Index><<<blocksForAll(n), kBlockThreads, 0, stream>>>(static_cast<Index>(n), f);
  return cudaGetLastError();
}

template <typename F>
cudaError_t forEach(std::int64_t n, cudaStream_t stream, F f) {
  return launchForEach<std::int64_t>(n, stream, f);
}

/// As above for an f that computes with `Extent`s. f takes `auto`: i has 32 bits if `most`, the element count
/// of the largest tensor that f reads, fits in 32 bits, else 64.
template <typename F>
cudaError_t forEachPlace(std::int64_t n, std::int64_t most, cudaStream_t stream, F f) {
  if (n <= kMostNarrow && most <= kMostNarrow) return launchForEach<std::int32_t>(n, stream, f);
  return launchForEach<std::int64_t>(n, stream, f);
}

/// Adjacent elements, read or written at once.
template <typename T, int width>
struct alignas(sizeof(T) * width < 16 ? sizeof(T) * width : 16) Piece {
  T at[width];
};
template <int width>
using Width = std::integral_constant<int, width>;
inline constexpr int kPiece = 4;  // elements: 16 bytes of floats

// Write addresses as `x + (row * size + place)`, adding indices first: the compiler then more reliably makes
// one access.
template <int width, typename T>
__device__ Piece<T, width> read(const T* from) {
  return *reinterpret_cast<const Piece<T, width>*>(from);
}
template <int width, typename T>
__device__ void write(T* to, const Piece<T, width>& piece) {
  *reinterpret_cast<Piece<T, width>*>(to) = piece;
}

/// Whether pieces of kPiece elements may be read and written at these addresses.
template <typename... T>
bool holdPieces(const T*... from) {
  return ((reinterpret_cast<std::uintptr_t>(from) % alignof(Piece<T, kPiece>) == 0) && ...);
}

/// Calls f(i, Width<kPiece>) for the first `pieces` pieces of n elements, then f(i, Width<1>) for the
/// remaining elements.
template <typename Index, typename F>
__global__ void __launch_bounds__(kBlockThreads) forEachPieceKernel(Index n, Index pieces, F f) {
  const auto turn = threadInGrid<Index>();
  if (turn < pieces) {
    f(kPiece * turn, Width<kPiece>{});
  } else if (const Index i = turn + (kPiece - 1) * pieces; i < n) {
    f(i, Width<1>{});
  }
}

template <typename Index, typename F>
cudaError_t launchForEachPiece(std::int64_t n, bool whole, cudaStream_t stream, F f) {
  if (n <= 0) return cudaSuccess;
  const std::int64_t pieces = whole ? n / kPiece : 0, turns = n - (kPiece - 1) * pieces;
  forEachPieceKernel<Index><<<blocksForAll(turns), kBlockThreads, 0, stream>>>(static_cast<Index>(n),
                                                                               static_cast<Index>(pieces), f);
  return cudaGetLastError();
}

/// Calls f(i, width) so that each of n elements is covered once, `width` elements from i on: kPiece if
/// `whole` (`holdPieces`) allows it, else 1.
template <typename F>
cudaError_t forEachPiece(std::int64_t n, bool whole, cudaStream_t stream, F f) {
  return launchForEachPiece<std::int64_t>(n, whole, stream, f);
}
/// As above for an f that computes indices, see `forEachPlace`.
template <typename F>
cudaError_t forEachPieceAndPlace(std::int64_t n, std::int64_t most, bool whole, cudaStream_t stream, F f) {
  if (n <= kMostNarrow && most <= kMostNarrow) return launchForEachPiece<std::int32_t>(n, whole, stream, f);
  return launchForEachPiece<std::int64_t>(n, whole, stream, f);
}

/// y[i] = f(x[i]) for each i below n; x and y may be the same memory.
template <typename X, typename Y, typename F>
cudaError_t map(std::int64_t n, const X* x, Y* y, cudaStream_t stream, F f) {
  return forEachPiece(n, holdPieces(x, y), stream, [=] __device__(auto i, auto width) {
    const auto from = read<width>(x + i);
    Piece<Y, width> to;
#pragma unroll
    for (int k = 0; k < width; ++k) to.at[k] = f(from.at[k]);
    write<width>(y + i, to);
  });
}
/// y[i] = f(a[i], b[i]) for each i below n; y may be the memory of a or b.
template <typename A, typename B, typename Y, typename F>
cudaError_t map(std::int64_t n, const A* a, const B* b, Y* y, cudaStream_t stream, F f) {
  return forEachPiece(n, holdPieces(a, b, y), stream, [=] __device__(auto i, auto width) {
    const auto first = read<width>(a + i);
    const auto second = read<width>(b + i);
    Piece<Y, width> to;
#pragma unroll
    for (int k = 0; k < width; ++k) to.at[k] = f(first.at[k], second.at[k]);
    write<width>(y + i, to);
  });
}

/// Calls f(row, lane) for each row in all threads of one warp.
template <typename F>
__global__ void __launch_bounds__(kBlockThreads) forEachRowKernel(std::int64_t rows, F f) {
  const std::int64_t row = threadInGrid<std::int64_t>() / 32;
  if (row < rows) f(row, static_cast<int>(threadIdx.x % 32));
}

template <typename F>
cudaError_t forEachRow(std::int64_t rows, cudaStream_t stream, F f) {
  if (rows <= 0) return cudaSuccess;
  forEachRowKernel<<<blocksForAll(rows, kBlockThreads / 32), kBlockThreads, 0, stream>>>(rows, f);
  return cudaGetLastError();
}

__device__ inline float sigmoid(float x) {
  const float e = expf(x < 0.0f ? x : -x);  // cannot overflow
  return x < 0.0f ? e / (1.0f + e) : 1.0f / (1.0f + e);
}

}  // namespace muster::cuda
