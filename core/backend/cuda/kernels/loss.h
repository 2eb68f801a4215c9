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

/// Numbers of scratch that a call needs: two for each row.
constexpr std::int64_t lossScratch(std::int64_t rows) {
  return 2 * rows;
}

/// One warp a row, then one block that adds the rows in a fixed order.
cudaError_t launchLoss(const LossCall& call, double* scratch, cudaStream_t stream);

}  // namespace muster::cuda
