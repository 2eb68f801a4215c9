#pragma once

#include <cstdlib>

#include "muster/core/backend/cpu/onednn.h"

namespace muster::cpu {

/// A row-major matrix, possibly part of a wider one.
struct Matrix {
  const float* data;
  std::int64_t rowStride;
  bool transposed = false;  ///< used as its transpose

  Matrix transpose() const { return {data, rowStride, !transposed}; }
};

/// A distance of rows of so many columns that is no multiple of 1 KiB: at such distances the elements of a
/// column share a few places of the L1 cache.
constexpr std::int64_t spacedStride(std::int64_t columns) {
  return columns % 256 == 0 ? columns + 16 : columns;
}

/// c [rows, columns] = a [rows, inner] b [inner, columns] + keep * c, by oneDNN. Shapes are after
/// transposing.
inline void gemm(std::int64_t rows, std::int64_t columns, std::int64_t inner, Matrix a, Matrix b, float keep,
                 float* c, std::int64_t rowStride) {
  MUSTER_DNNL_CHECK(dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', rows, columns, inner, 1.0f,
                               a.data, a.rowStride, b.data, b.rowStride, keep, c, rowStride));
}

/// Call this when planning products, on the thread that computes them. Each call of `dnnl_sgemm` allocates up
/// to a megabyte of aligned scratch memory and frees it. glibc 2.36 keeps the small remainders beside that
/// memory in the thread's cache of small chunks until the cache is full. Until then no call can reuse the
/// memory of the previous one, and about ten holes remain. So this function fills the cache.
inline void fillSmallChunkCache() {
  constexpr std::size_t kLargestRest = 200;
  for (std::size_t size = 24; size <= kLargestRest; size += 16) {
    void* volatile chunks[7];  // the cache's capacity per size
    for (auto& chunk : chunks) chunk = std::malloc(size);
    for (auto& chunk : chunks) std::free(chunk);
  }
}

}  // namespace muster::cpu
