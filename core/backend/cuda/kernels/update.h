#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"
#include "muster/core/ops/update_rules.h"

namespace muster::cuda {

/// Adjacent parameters with the same settings, on the device.
struct DeviceRange {
  double learningScale;
  float l1, l2, weightDecay;
};
/// The elements that one block updates at a time: at most kChunkElements of one range.
struct Chunk {
  std::int64_t begin;
  std::int32_t count, range;
};
inline constexpr std::int64_t kChunkElements = 4 * kBlockThreads;

/// Numbers of a loss: its sum is the first, the row with an invalid class (or -1) the third.
inline constexpr std::int64_t kNumbersOfLoss = 4;

struct UpdateCall {
  float* parameters;
  const float* gradients;
  float* state[2];
  const DeviceRange* ranges;
  const Chunk* chunks;
  std::int64_t chunkCount;
  const update::StepNumbers* numbers;  // read again at each launch of a captured update
  const double* clipScale;             // scale from clipping by norm; null: 1
  float clipValue;                     // infinity: no clamp
  double* scratch;                     // 2 blocksFor(chunkCount, 1) numbers
  std::uint32_t* counter;
  const double* losses;  // the step's loss numbers; null: not checked
  std::int64_t lossCount;
  double* badGradient;           // the first element whose gradient is not finite, or -1; null: not checked
  unsigned long long* firstBad;  // scratch for badGradient; all bits set before and after a launch
  double* refused;               // set to 1 if the update was refused, else to 0; may be null
  double* penalty;               // sum(l1 |w| + l2/2 w^2) at the parameters before the update
};

/// One kernel for the whole block. It sets only `refused` and the penalty if a loss is bad (penalty 0) or the
/// gradient is bad (penalty NaN). The penalty is also NaN if a written number is not finite.
cudaError_t launchUpdate(const UpdateCall& call, const UpdateRule& rule, cudaStream_t stream);
/// Computes only the penalty, with the same bits. Reads parameters, ranges and chunks.
cudaError_t launchPenalty(const UpdateCall& call, cudaStream_t stream);

/// squares = sum of (gradientScale g)^2 over the chunks; scale = clipNorm / sqrt(squares), at most 1.
/// `numbers` may be null: gradientScale 1. `result` is {squares, scale}. Sets `badGradient` if it is not
/// null.
cudaError_t launchSquaredNorm(const UpdateCall& call, double clipNorm, double* result, cudaStream_t stream);

}  // namespace muster::cuda
