#pragma once

#include "muster/core/backend/cpu/onednn.h"

namespace muster::cpu {

/// A row-major matrix, possibly part of a wider one.
struct Matrix {
  const float* data;
  std::int64_t rowStride;
  bool transposed = false;  ///< used as its transpose

  Matrix transpose() const { return {data, rowStride, !transposed}; }
};

/// c [rows, columns] = a [rows, inner] b [inner, columns] + keep * c, by oneDNN. Shapes are after
/// transposing.
inline void gemm(std::int64_t rows, std::int64_t columns, std::int64_t inner, Matrix a, Matrix b, float keep,
                 float* c, std::int64_t rowStride) {
  MUSTER_DNNL_CHECK(dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', rows, columns, inner, 1.0f,
                               a.data, a.rowStride, b.data, b.rowStride, keep, c, rowStride));
}

}  // namespace muster::cpu
