#pragma once

#include <cstdint>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// A matrix [rows, columns] in a block, from element `offset`, and its factors in other blocks of that size:
/// P [rows, rank] from the same element, Q [columns, rank] after it.
struct LowRankMatrix {
  static constexpr std::int64_t kMostRank = 32;

  std::int64_t offset = 0, rows = 0, columns = 0, rank = 1;

  std::int64_t right() const { return offset + rows * rank; }  ///< where Q begins
  std::int64_t end() const { return right() + columns * rank; }
};

// A low-rank approximation of what replicas send, in two steps between which workers take means. The move is
// V = values - base + residual, where `sent` holds the base. All tensors are float32 or all float64,
// RowMajor, of one size, on the context's device; sums are float64. Enqueued on GPUs; allocates nothing.
// @throws InvalidArgument if they do not fit, or unless 1 <= rank <= kMostRank and the factors are shorter
// than the matrix. Source: Vogels, Karimireddy & Jaggi 2019 (PowerSGD).

/// P = V Q, written to `factors`.
/// @param means  holds Q, the mean over the workers of the last one; fixed random numbers replace zeros.
void projectDelta(const LowRankMatrix& matrix, const Tensor& values, const Tensor& sent,
                  const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context);
/// `factors` gets P with orthonormal columns, and Q = V^T P. Then `sent` becomes base + P Q^T, rounded, and
/// residual = remember * (V - (sent - base)).
/// @param means  holds P, the mean over the workers.
void codeLowRank(const LowRankMatrix& matrix, double remember, const Tensor& values, const Tensor& sent,
                 const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context);
/// Where Q arrives, on the CPU: `sent`, which holds the base at first, gets the bits that `codeLowRank` gave
/// it.
/// @param factors  holds Q, and gets P with orthonormal columns.  @param means  holds P, as there.
/// @throws DeviceUnavailable on a GPU.
void decodeLowRank(const LowRankMatrix& matrix, const Tensor& sent, const Tensor& means,
                   const Tensor& factors, Context& context);

namespace cpu {
void projectDelta(const LowRankMatrix& matrix, const Tensor& values, const Tensor& sent,
                  const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context);
void codeLowRank(const LowRankMatrix& matrix, double remember, const Tensor& values, const Tensor& sent,
                 const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context);
void decodeLowRank(const LowRankMatrix& matrix, const Tensor& sent, const Tensor& means,
                   const Tensor& factors, Context& context);
}  // namespace cpu
namespace cuda {
void projectDelta(const LowRankMatrix& matrix, const Tensor& values, const Tensor& sent,
                  const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context);
void codeLowRank(const LowRankMatrix& matrix, double remember, const Tensor& values, const Tensor& sent,
                 const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context);
}  // namespace cuda

}  // namespace muster
