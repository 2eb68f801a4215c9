#pragma once

#include <cstdint>
#include <string>

#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/error.h"
#include "muster/core/tensor/tensor.h"

namespace muster::cuda {

/// Row-major d[rows, columns] = a b^T, a^T b or a b.
struct MatmulShape {
  std::int64_t rows, columns, inner;
  bool transposeA = false;  ///< a is [inner, rows] in memory, else [rows, inner]
  bool transposeB = false;  ///< b is [columns, inner] in memory, else [inner, columns]
  /// Number of products; their matrices are consecutive in memory.
  std::int64_t batch = 1;
  /// Alignment of the factors' addresses in bytes: 2, 4, 8 or 16.
  std::uint32_t alignment = 16;
  /// Alignment of result and bias, which are float32 in every mode: 4, 8 or 16.
  std::uint32_t resultAlignment = 16;
};

enum class Epilogue {
  None,
  Bias,  ///< adds bias[columns]
};

/// A planned matrix product of cuBLASLt: the first algorithm that its heuristics return for the shape, the
/// math mode and the context's workspace. a and b are float32, or bfloat16 in that mode; d and bias are
/// float32. If cuBLASLt has no algorithm for TensorFloat32, factors are not rounded.
class Matmul {
 public:
  /// @throws DeviceFailure if cuBLASLt has no algorithm even without an epilogue.
  Matmul(State& state, MathMode mode, const MatmulShape& shape, Epilogue epilogue);
  /// Whether cuBLASLt has an algorithm for the product; always true without an epilogue.
  bool supported() const { return supported_; }
  void run(const void* a, const void* b, const float* bias, float* d) { multiply(a, b, bias, 0, d); }
  /// Adds the product to d.
  void add(const void* a, const void* b, float* d) { multiply(a, b, nullptr, 1, d); }

 private:
  void multiply(const void* a, const void* b, const float* bias, float keep, float* d);
  /// Chooses an algorithm for these types. @return "", or cuBLASLt's message if there is none.
  std::string choose(cublasComputeType_t compute, cudaDataType_t factors, const MatmulShape& shape,
                     Epilogue epilogue);

  State* state_;
  std::uint32_t alignment_, resultAlignment_;
  bool supported_ = false;
  MatmulOwner description_;
  MatrixOwner first_, second_, result_;  // in cuBLASLt's column-major view
  cublasLtMatmulAlgo_t algorithm_{};
};

/// A factor of a product in the math mode's type: the tensor itself, or a copy rounded to bfloat16 in planned
/// memory.
class Factor {
 public:
  Factor(std::int64_t elements, const State& state, MathMode mode);

  /// Whether `of` writes a rounded copy.
  bool rounds() const { return rounded_.bytes() > 0; }
  const void* of(const float* elements, cudaStream_t stream) const;
  const void* of(const Tensor& tensor, cudaStream_t stream) const { return of(tensor.data<float>(), stream); }

 private:
  std::int64_t elements_;
  Buffer rounded_;
};

/// Calls make(mode) with the context's math mode, or with TensorFloat32 if cuBLASLt lacks a bfloat16 product.
template <typename Make>
auto planProducts(const State& state, Make make) {
  if (state.mathMode() != MathMode::BFloat16) return make(state.mathMode());
  try {
    return make(MathMode::BFloat16);
  } catch (const DeviceFailure& error) {
    muster::detail::warnOnce(fmt::format("{}; its factors are not rounded to bfloat16", error.what()));
  }
  return make(MathMode::TensorFloat32);
}

}  // namespace muster::cuda
