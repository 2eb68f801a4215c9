#pragma once

#include <cstdint>
#include <span>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// The step of an outer optimiser from the merged copy W to the weighted mean m of the replicas, and the
/// point from which these continue. With the momentum D, initially 0:
///
///     D = decay D + rate (m - W);   W = W + D;   replicas = W + ahead D
///
/// without it W = rate m + (1 - rate) W, and the replicas become W.
struct StepToMean {
  double rate = 1;
  double decay = 0, ahead = 0;
  Tensor moves = {};  ///< D, as large as a replica and of its type, or undefined
};

/// Takes such a step from elements [begin, end) of the replicas, in one pass, with the bits of linear
/// combinations one after the other: m in float64, then D, W and the replicas, each rounded once.
/// @param replicas  float32 or float64, of one type and size, RowMajor, on the CPU.
/// @param weights   one for each replica, >= 0, not all 0.
/// @param mergedCopy  W, of the replicas' type and size.
/// @throws InvalidArgument if types or sizes differ; DeviceUnavailable on a GPU; NonFiniteResult.
/// Elements outside [begin, end) are not written, so several threads may each take a slice. Source: Chen and
/// Huo 2016, "Scalable training of deep learning machines by incremental block training with intra-block
/// parallel optimization and blockwise model-update filtering".
void stepToMean(std::span<const Tensor> replicas, std::span<const double> weights, const Tensor& mergedCopy,
                const StepToMean& step, std::int64_t begin, std::int64_t end, Context& context);

namespace cpu {
void stepToMean(std::span<const Tensor> replicas, std::span<const double> weights, const Tensor& mergedCopy,
                const StepToMean& step, std::int64_t begin, std::int64_t end, Context& context);
}  // namespace cpu

}  // namespace muster
