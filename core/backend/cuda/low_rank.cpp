#include "muster/core/ops/low_rank.h"

#include "muster/core/backend/cuda/kernels/low_rank.h"
#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {
namespace {

LowRankCall callOf(const LowRankMatrix& m, double remember, const Tensor& values, const Tensor& sent,
                   const Tensor& residual, const Tensor& means, const Tensor& factors) {
  return {
      values.raw(), sent.raw(), residual.raw(), means.raw(), factors.raw(), values.dtype() == DType::Float64,
      remember,     m.offset,   m.rows,         m.columns,   m.rank};
}

}  // namespace

void projectDelta(const LowRankMatrix& matrix, const Tensor& values, const Tensor& sent,
                  const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context) {
  MUSTER_CUDA_CHECK(launchProjectDelta(callOf(matrix, 1, values, sent, residual, means, factors),
                                       stateOf(context).stream()));
}

void codeLowRank(const LowRankMatrix& matrix, double remember, const Tensor& values, const Tensor& sent,
                 const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context) {
  MUSTER_CUDA_CHECK(launchCodeLowRank(callOf(matrix, remember, values, sent, residual, means, factors),
                                      stateOf(context).stream()));
}

}  // namespace muster::cuda
