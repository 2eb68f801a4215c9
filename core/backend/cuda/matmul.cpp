#include "muster/core/backend/cuda/matmul.h"

#include "muster/core/base/detail/vendor_call.h"
#include "muster/core/base/error.h"

// Row-major d = a b is column-major d' = b' a', where x' is x as column-major memory reads it: so cuBLASLt's
// first matrix is our b, its second our a, and its rows are our columns.

namespace muster::cuda {
namespace {

MatrixOwner makeMatrix(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  return make<MatrixOwner>([&](auto* matrix) {
    MUSTER_CUDA_CHECK(blas().cublasLtMatrixLayoutCreate(matrix, type, static_cast<std::uint64_t>(rows),
                                                        static_cast<std::uint64_t>(columns), rows));
  });
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

PreferenceOwner makePreference() {
  auto preference = make<PreferenceOwner>(
      [](auto* made) { MUSTER_CUDA_CHECK(blas().cublasLtMatmulPreferenceCreate(made)); });
  set(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes});
  for (auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference.get(), attribute, Matmul::kAlignment);
  return preference;
}

void requireAligned(const void* data, const char* name) {
  require(reinterpret_cast<std::uintptr_t>(data) % Matmul::kAlignment == 0,
          "matrix product: {} must begin at a multiple of {} bytes on a GPU", name, Matmul::kAlignment);
}

}  // namespace

Matmul::Matmul(State& state, const MatmulShape& s, Epilogue epilogue) : state_(&state) {
  const muster::detail::VendorCall inside;
  const MathMode mode = state.mathMode();
  const auto compute = mode == MathMode::TensorFloat32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const auto factors = mode == MathMode::BFloat16 ? CUDA_R_16BF : CUDA_R_32F;
  description_ = make<MatmulOwner>(
      [&](auto* made) { MUSTER_CUDA_CHECK(blas().cublasLtMatmulDescCreate(made, compute, CUDA_R_32F)); });
  set(description_.get(), CUBLASLT_MATMUL_DESC_TRANSA, s.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_.get(), CUBLASLT_MATMUL_DESC_TRANSB, s.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE,
      epilogue == Epilogue::Bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
  if (epilogue == Epilogue::Bias) set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
  first_ = s.transposeB ? makeMatrix(factors, s.inner, s.columns) : makeMatrix(factors, s.columns, s.inner);
  second_ = s.transposeA ? makeMatrix(factors, s.rows, s.inner) : makeMatrix(factors, s.inner, s.rows);
  result_ = makeMatrix(CUDA_R_32F, s.columns, s.rows);

  const auto preference = makePreference();
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = blas().cublasLtMatmulAlgoGetHeuristic(
      state.blasHandle(), description_.get(), first_.get(), second_.get(), result_.get(), result_.get(),
      preference.get(), 1, &best, &found);
  supported_ = status == CUBLAS_STATUS_SUCCESS && found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  if (!supported_ && epilogue == Epilogue::None) {
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    throw DeviceFailure(fmt::format("CUDA: cuBLASLt has no algorithm for a product [{}, {}] of inner size {}",
                                    s.rows, s.columns, s.inner));
  }
  algorithm_ = best.algo;
}

void Matmul::run(const void* a, const void* b, const float* bias, float* d) {
  requireAligned(a, "the first factor");
  requireAligned(b, "the second factor");
  requireAligned(d, "the result");
  const muster::detail::VendorCall inside;
  if (bias) {
    requireAligned(bias, "the bias");
    set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  constexpr float one = 1, zero = 0;
  MUSTER_CUDA_CHECK(blas().cublasLtMatmul(
      state_->blasHandle(), description_.get(), &one, b, first_.get(), a, second_.get(), &zero, d,
      result_.get(), d, result_.get(), &algorithm_, state_->workspace(), kWorkspaceBytes, state_->stream()));
}

}  // namespace muster::cuda
