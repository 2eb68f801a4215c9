#include "muster/core/ops/low_rank.h"

#include <initializer_list>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

void requireMatrix(const LowRankMatrix& m, std::initializer_list<Tensor> tensors, const Context& context) {
  const Tensor& first = *tensors.begin();
  for (const Tensor& t : tensors) {
    const bool real = t.defined() && (t.dtype() == DType::Float32 || t.dtype() == DType::Float64);
    if (!real || t.dtype() != first.dtype() || t.layout() != Layout::RowMajor ||
        t.elements() != first.elements() || t.device() != context.device())
      throw InvalidArgument(fmt::format(
          "low rank: expected float32 or float64, row-major, with {} elements on {}, all of one type, got {}",
          first.elements(), context.device().toString(), t.toString()));
  }
  require(m.rank >= 1 && m.rank <= LowRankMatrix::kMostRank,
          "low rank: rank must be between 1 and {}, got {}", LowRankMatrix::kMostRank, m.rank);
  require(m.rows >= 1 && m.columns >= 1 && m.offset >= 0 &&
              m.offset + m.rows * m.columns <= first.elements() &&
              m.rank * (m.rows + m.columns) <= m.rows * m.columns,
          "low rank: [{}, {}] at element {} of {} has no room for factors of rank {}", m.rows, m.columns,
          m.offset, first.elements(), m.rank);
}

}  // namespace

void projectDelta(const LowRankMatrix& matrix, const Tensor& values, const Tensor& sent,
                  const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context) {
  requireMatrix(matrix, {values, sent, residual, means, factors}, context);
  if (context.device().isCpu())
    return cpu::projectDelta(matrix, values, sent, residual, means, factors, context);
  if constexpr (kCudaBuilt)
    return cuda::projectDelta(matrix, values, sent, residual, means, factors, context);
  throw DeviceUnavailable("projectDelta: this build has no CUDA");
}

void codeLowRank(const LowRankMatrix& matrix, double remember, const Tensor& values, const Tensor& sent,
                 const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context) {
  requireMatrix(matrix, {values, sent, residual, means, factors}, context);
  require(remember >= 0 && remember <= 1, "codeLowRank: remember must be in [0, 1], got {}", remember);
  if (context.device().isCpu())
    return cpu::codeLowRank(matrix, remember, values, sent, residual, means, factors, context);
  if constexpr (kCudaBuilt)
    return cuda::codeLowRank(matrix, remember, values, sent, residual, means, factors, context);
  throw DeviceUnavailable("codeLowRank: this build has no CUDA");
}

void decodeLowRank(const LowRankMatrix& matrix, const Tensor& sent, const Tensor& means,
                   const Tensor& factors, Context& context) {
  for (const Tensor& tensor : {sent, means, factors}) detail::expectOnCpu("decodeLowRank", tensor);
  requireMatrix(matrix, {sent, means, factors}, context);
  cpu::decodeLowRank(matrix, sent, means, factors, context);
}

}  // namespace muster
