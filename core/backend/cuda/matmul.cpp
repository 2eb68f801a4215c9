#include "muster/core/backend/cuda/matmul.h"

#include <array>
#include <limits>
#include <span>

#include "muster/core/backend/cuda/kernels/reorder.h"
#include "muster/core/base/detail/vendor_call.h"
#include "muster/core/base/error.h"

// Row-major d = a b is column-major d' = b' a', where x' is the memory of x read as column-major. So
// cuBLASLt's first matrix is our b, its second matrix is our a, and its rows are our columns.

namespace muster::cuda {
namespace {

template <typename Value>
void set(cublasLtMatrixLayout_t matrix, cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
  MUSTER_CUDA_CHECK(blas().cublasLtMatrixLayoutSetAttribute(matrix, attribute, &value, sizeof value));
}

template <typename Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  MUSTER_CUDA_CHECK(blas().cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
}

template <typename Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  MUSTER_CUDA_CHECK(blas().cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

MatrixOwner makeMatrix(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
  auto matrix = make<MatrixOwner>([&](auto* made) {
    MUSTER_CUDA_CHECK(blas().cublasLtMatrixLayoutCreate(made, type, static_cast<std::uint64_t>(rows),
                                                        static_cast<std::uint64_t>(columns), rows));
  });
  if (batch == 1) return matrix;
  require(batch <= std::numeric_limits<std::int32_t>::max(), "matrix product: {} at once are too many",
          batch);
  set(matrix.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
  set(matrix.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, rows * columns);
  return matrix;
}

PreferenceOwner makePreference(const MatmulShape& s) {
  auto preference = make<PreferenceOwner>(
      [](auto* made) { MUSTER_CUDA_CHECK(blas().cublasLtMatmulPreferenceCreate(made)); });
  set(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes});
  // Exclude the reduction scheme that adds parts to the result in place: its order of additions varies.
  set(preference.get(), CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (auto factor : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES})
    set(preference.get(), factor, s.alignment);
  for (auto result : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference.get(), result, s.resultAlignment);
  return preference;
}

std::string describe(const MatmulShape& s, MathMode mode) {
  return fmt::format("{} {} products [{}, {}] of inner size {}{}{} at multiples of {} bytes, results of {}",
                     s.batch, nameOf(mode), s.rows, s.columns, s.inner,
                     s.transposeA ? ", first transposed" : "", s.transposeB ? ", second transposed" : "",
                     s.alignment, s.resultAlignment);
}

void requireAligned(const void* data, const char* name, std::uint32_t alignment) {
  require(reinterpret_cast<std::uintptr_t>(data) % alignment == 0,
          "matrix product: {} must begin at a multiple of {} bytes on a GPU", name, alignment);
}

}  // namespace

Matmul::Matmul(State& state, MathMode mode, const MatmulShape& s, Epilogue epilogue)
    : state_(&state), alignment_(s.alignment), resultAlignment_(s.resultAlignment) {
  const muster::detail::VendorCall inside;
  const auto factors = mode == MathMode::BFloat16 ? CUDA_R_16BF : CUDA_R_32F;
  const auto compute = mode == MathMode::TensorFloat32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  std::string why = choose(compute, factors, s, epilogue);
  if (epilogue != Epilogue::None)
    return;  // the caller prefers this mode without the epilogue to a slower mode
  if (!supported_ && mode == MathMode::TensorFloat32) {
    const std::string more = choose(CUBLAS_COMPUTE_32F, factors, s, epilogue);
    if (supported_)
      muster::detail::warnOnce(
          fmt::format("CUDA: cuBLASLt has no algorithm for {} ({}); they are multiplied in float32",
                      describe(s, mode), why));
    why += ", " + more;
  }
  if (!supported_)
    throw DeviceFailure(fmt::format("CUDA: cuBLASLt has no algorithm for {} ({})", describe(s, mode), why));
}

std::string Matmul::choose(cublasComputeType_t compute, cudaDataType_t factors, const MatmulShape& s,
                           Epilogue epilogue) {
  description_ = make<MatmulOwner>(
      [&](auto* made) { MUSTER_CUDA_CHECK(blas().cublasLtMatmulDescCreate(made, compute, CUDA_R_32F)); });
  set(description_.get(), CUBLASLT_MATMUL_DESC_TRANSA, s.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_.get(), CUBLASLT_MATMUL_DESC_TRANSB, s.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE,
      epilogue == Epilogue::Bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
  if (epilogue == Epilogue::Bias) {
    set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
    // The heuristics may depend on the bias's alignment, so pass an address with that alignment.
    const void* const standIn = static_cast<const std::byte*>(state_->workspace()) + s.resultAlignment;
    set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, standIn);
  }
  first_ = s.transposeB ? makeMatrix(factors, s.inner, s.columns, s.batch)
                        : makeMatrix(factors, s.columns, s.inner, s.batch);
  second_ = s.transposeA ? makeMatrix(factors, s.rows, s.inner, s.batch)
                         : makeMatrix(factors, s.inner, s.rows, s.batch);
  result_ = makeMatrix(CUDA_R_32F, s.columns, s.rows, s.batch);

  const auto preference = makePreference(s);
  std::array<cublasLtMatmulHeuristicResult_t, 8> offered{};
  int count = 0;
  const cublasStatus_t status = blas().cublasLtMatmulAlgoGetHeuristic(
      state_->blasHandle(), description_.get(), first_.get(), second_.get(), result_.get(), result_.get(),
      preference.get(), static_cast<int>(offered.size()), offered.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) return blas().cublasLtGetStatusString(status);
  for (const auto& one : std::span(offered).first(static_cast<std::size_t>(count)))
    if (one.state == CUBLAS_STATUS_SUCCESS) {
      algorithm_ = one.algo;
      supported_ = true;
      return "";
    }
  return fmt::format("none of {} that were offered", count);
}

void Matmul::multiply(const void* a, const void* b, const float* bias, float keep, float* d) {
  requireAligned(a, "the first factor", alignment_);
  requireAligned(b, "the second factor", alignment_);
  requireAligned(d, "the result", resultAlignment_);
  const muster::detail::VendorCall inside;
  if (bias) {
    requireAligned(bias, "the bias", resultAlignment_);
    set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  constexpr float one = 1;
  MUSTER_CUDA_CHECK(blas().cublasLtMatmul(
      state_->blasHandle(), description_.get(), &one, b, first_.get(), a, second_.get(), &keep, d,
      result_.get(), d, result_.get(), &algorithm_, state_->workspace(), kWorkspaceBytes, state_->stream()));
}

Factor::Factor(std::int64_t elements, const State& state, MathMode mode)
    : elements_(elements),
      rounded_(mode == MathMode::BFloat16 ? static_cast<std::size_t>(elements) * 2 : 0, state.device()) {}

const void* Factor::of(const float* elements, cudaStream_t stream) const {
  if (rounded_.bytes() == 0) return elements;
  MUSTER_CUDA_CHECK(launchToBFloat16(elements, rounded_.data(), elements_, stream));
  return rounded_.data();
}

}  // namespace muster::cuda
