#pragma once

#include <cstdint>

#include "muster/core/backend/cpu/gemm.h"
#include "muster/core/device/context.h"

namespace muster::cpu {

/// The gradient of a weight as a sum over rows, gradY^T x, by oneDNN's matrix product.
///
/// `dnnl_sgemm` reads columns of both factors, and takes up to twice the time if the distance of a factor's
/// rows is a multiple of 1 KiB (see `spacedStride`). Such factors are copied first, a block of rows at a
/// time.
class WeightGradient {
 public:
  /// Call this when planning: it reserves memory in the context's workspace.
  /// @param gradYStride  distance of the rows of gradY, at least `out`
  WeightGradient(std::int64_t rows, std::int64_t out, std::int64_t gradYStride, std::int64_t in,
                 Context& context);

  /// gradient [out, in] = the sum over all rows of gradY [rows, out] times x [rows, in].
  void run(const float* gradY, const float* x, float* gradient);

 private:
  /// A factor's rows, and whether they are copied.
  struct Factor {
    std::int64_t columns, stride;
    bool copied;
    std::int64_t floats(std::int64_t rows) const { return copied ? rows * spacedStride(columns) : 0; }
  };
  struct Block {
    const float* data;
    std::int64_t stride;
  };
  Block blockOf(const Factor& factor, const float* data, std::int64_t begin, std::int64_t end, float* copy);

  Context& context_;
  std::int64_t rows_, blockRows_;
  Factor gradY_, x_;
};

}  // namespace muster::cpu
