#pragma once

#include <cstdint>
#include <string>

#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/tensor/tensor.h"

namespace muster::cuda {

/// Row-major d[rows, columns] = a b^T or a^T b or a b, each as it lies in memory.
struct MatmulShape {
  std::int64_t rows, columns, inner;
  bool transposeA = false;  ///< a lies as [inner, rows], else [rows, inner]
  bool transposeB = false;  ///< b lies as [columns, inner], else [inner, columns]
  /// That many products, whose matrices lie one after the other.
  std::int64_t batch = 1;
  /// All addresses are multiples of this, in bytes: 2, 4, 8 or 16.
  std::uint32_t alignment = 16;
};

enum class Epilogue {
  None,
  Bias,  ///< adds bias[columns]
};

/// A matrix product by cuBLASLt, planned: the algorithm is the first that its heuristics give for the shape,
/// the math mode and the context's workspace. a and b are float32, or bfloat16 in that mode; d and bias
/// float32. Where cuBLASLt has none for TensorFloat32, float32 is multiplied as it is.
class Matmul {
 public:
  /// @throws DeviceFailure where cuBLASLt has no algorithm without an epilogue.
  Matmul(State& state, MathMode mode, const MatmulShape& shape, Epilogue epilogue);
  /// Whether cuBLASLt has an algorithm for this; without an epilogue it always has.
  bool supported() const { return supported_; }
  void run(const void* a, const void* b, const float* bias, float* d) { multiply(a, b, bias, 0, d); }
  /// Adds the product to d.
  void add(const void* a, const void* b, float* d) { multiply(a, b, nullptr, 1, d); }

 private:
  void multiply(const void* a, const void* b, const float* bias, float keep, float* d);
  /// Plans with an algorithm that multiplies so; "", or what cuBLASLt said where it has none.
  std::string choose(cublasComputeType_t compute, cudaDataType_t factors, const MatmulShape& shape,
                     Epilogue epilogue);

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
  Factor(std::int64_t elements, const State& state, MathMode mode);

  /// Whether it has a place of its own, where `of` leaves what it gives.
  bool rounds() const { return rounded_.bytes() > 0; }
  const void* of(const float* elements, cudaStream_t stream) const;
  const void* of(const Tensor& tensor, cudaStream_t stream) const { return of(tensor.data<float>(), stream); }

 private:
  std::int64_t elements_;
  Buffer rounded_;
};

/// make(mode) with the context's math mode, and with TensorFloat32 where cuBLASLt lacks one of its products
/// of bfloat16.
template <typename Make>
auto planProducts(const State& state, Make make) {
  if (state.mathMode() != MathMode::BFloat16) return make(state.mathMode());
  try {
    return make(MathMode::BFloat16);
  } catch (const DeviceFailure& error) {
    logWarning("{}; its factors are not rounded to bfloat16", error.what());
  }
  return make(MathMode::TensorFloat32);
}

}  // namespace muster::cuda
