#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

enum class LossKind { Classes, SoftLabels, Squared, Binary };

struct LossCall {
  LossKind kind;
  const float* predictions;     // [rows, features]
  const std::int64_t* classes;  // [rows], of Classes
  const float* labels;          // [rows, features], of the others
  const float* mask;            // [rows] or null
  float* gradient;              // or null; may be the predictions
  const double* normaliserAt;   // on the device, or null: the number beside
  double normaliser;            // 0: the weight of these rows
  double* value;  // {sum, weight or NaN, first row whose class is out of range or -1, that class}
  std::int64_t rows, features;
};

/// What a call needs of `PartialSums`, however many rows it has.
inline constexpr std::int64_t kMostLossSums = 1 + 3 * kMostBlocks;

/// One kernel, a warp a row; where the gradient is divided by the sum of a mask, one for that before it.
cudaError_t launchLoss(const LossCall& call, const PartialSums& partial, cudaStream_t stream);

}  // namespace muster::cuda
