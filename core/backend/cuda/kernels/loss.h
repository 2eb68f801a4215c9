#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

enum class LossKind { Classes, SoftLabels, Squared, Binary, Absolute, Huber };

struct LossCall {
  LossKind kind;
  const float* predictions;     // [rows, features]
  const std::int64_t* classes;  // [rows], for Classes, and for Binary of one feature: 0 or 1; or null
  const float* labels;          // [rows, features], if there are no classes
  const float* mask;            // [rows] or null
  float* gradient;              // null: not computed; may be the predictions
  const double* normaliserAt;   // on the device; null: use `normaliser`
  double normaliser;            // 0: the weight of these rows
  double* value;  // {sum, weight or NaN, first row whose class is out of range or -1, that class}
  std::int64_t rows, features;
  double delta;      // of Huber
  double smoothing;  // of Classes and SoftLabels
};

/// Numbers of `PartialSums` that a call needs, for any number of rows.
inline constexpr std::int64_t kMostLossSums = 1 + 3 * kMostBlocks;

/// Launches one kernel with a warp per row; if the sum of a mask normalises the gradient, a kernel before it
/// computes that sum.
cudaError_t launchLoss(const LossCall& call, const PartialSums& partial, cudaStream_t stream);

}  // namespace muster::cuda
