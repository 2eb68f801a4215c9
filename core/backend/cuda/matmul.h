#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {

/// Row-major d[rows, columns] = a b^T or a^T b or a b, each as it lies in memory.
struct MatmulShape {
  std::int64_t rows, columns, inner;
  bool transposeA = false;  ///< a lies as [inner, rows], else [rows, inner]
  bool transposeB = false;  ///< b lies as [columns, inner], else [inner, columns]
};

enum class Epilogue {
  None,
  Bias,  ///< adds bias[columns]
};

/// A matrix product by cuBLASLt, planned: the algorithm is the first that its heuristics give for the shape,
/// the math mode and the context's workspace. a and b are float32, or bfloat16 in that mode; d and bias
/// float32.
class Matmul {
 public:
  /// Addresses are multiples of this, in bytes.
  static constexpr std::uint32_t kAlignment = 16;

  Matmul(State& state, const MatmulShape& shape, Epilogue epilogue);
  /// Whether cuBLASLt has an algorithm for this; without an epilogue it always has.
  bool supported() const { return supported_; }
  void run(const void* a, const void* b, const float* bias, float* d);

 private:
  State* state_;
  bool supported_ = false;
  MatmulOwner description_;
  MatrixOwner first_, second_, result_;  // as cuBLASLt takes them, column-major
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace muster::cuda
