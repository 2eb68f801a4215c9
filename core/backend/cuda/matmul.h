#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/state.h"
#include "muster/core/tensor/tensor.h"

namespace muster::cuda {

/// Row-major d[rows, columns] = a b^T or a^T b or a b, each as it lies in memory.
struct MatmulShape {
  std::int64_t rows, columns, inner;
  bool transposeA = false;  ///< a lies as [inner, rows], else [rows, inner]
  bool transposeB = false;  ///< b lies as [columns, inner], else [inner, columns]
  /// That many products, whose matrices lie one after the other.
  std::int64_t batch = 1;
  /// All addresses are multiples of this, in bytes: 4, 8 or 16.
  std::uint32_t alignment = 16;
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
  Matmul(State& state, const MatmulShape& shape, Epilogue epilogue);
  /// Whether cuBLASLt has an algorithm for this; without an epilogue it always has.
  bool supported() const { return supported_; }
  void run(const void* a, const void* b, const float* bias, float* d) { multiply(a, b, bias, 0, d); }
  /// Adds the product to d.
  void add(const void* a, const void* b, float* d) { multiply(a, b, nullptr, 1, d); }

 private:
  void multiply(const void* a, const void* b, const float* bias, float keep, float* d);

  State* state_;
  std::uint32_t alignment_;
  bool supported_ = false;
  MatmulOwner description_;
  MatrixOwner first_, second_, result_;  // as cuBLASLt takes them, column-major
  cublasLtMatmulAlgo_t algorithm_{};
};

/// A factor of a product as the math mode takes it: itself, or rounded to bfloat16 in memory planned for it.
class Factor {
 public:
  Factor(std::int64_t elements, const State& state);

  const void* of(const float* elements, cudaStream_t stream) const;
  const void* of(const Tensor& tensor, cudaStream_t stream) const { return of(tensor.data<float>(), stream); }

 private:
  std::int64_t elements_;
  Buffer rounded_;
};

}  // namespace muster::cuda
