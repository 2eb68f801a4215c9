#include "muster/core/backend/cuda/kernels/loss.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

struct LogSumExp {
  double top, sum;  // of the logits: their maximum, and the sum of exp(z - top)
  __device__ double log() const { return top + ::log(sum); }
};

__device__ LogSumExp logSumExp(const float* z, std::int64_t features, int lane) {
  double top = -INFINITY, sum = 0;
  for (std::int64_t f = lane; f < features; f += 32) top = fmax(top, static_cast<double>(z[f]));
  top = warpMax(top);
  for (std::int64_t f = lane; f < features; f += 32) sum += exp(z[f] - top);
  return {top, warpSum(sum)};
}

// Each row function returns the loss of a row in all lanes, and writes factor * d(loss)/d(prediction) if
// `gradient` is not null. `gradient` may be `z`: all lanes read `z` before any lane overwrites it.

__device__ double classRow(const float* z, std::int64_t label, float* gradient, std::int64_t features,
                           double factor, int lane) {
  const LogSumExp all = logSumExp(z, features, lane);
  const double value = all.log() - z[label];
  __syncwarp();
  if (gradient)
    for (std::int64_t f = lane; f < features; f += 32)
      gradient[f] = static_cast<float>(factor * (exp(z[f] - all.top) / all.sum - (f == label ? 1 : 0)));
  return value;
}

__device__ double softLabelRow(const float* z, const float* labels, float* gradient, std::int64_t features,
                               double factor, int lane) {
  const LogSumExp all = logSumExp(z, features, lane);
  const double log = all.log();
  double value = 0, mass = 0;
  for (std::int64_t f = lane; f < features; f += 32) {
    // A class with probability 0 adds nothing, even if its logit is -infinity.
    if (labels[f] != 0) value += labels[f] * (log - z[f]);
    mass += labels[f];
  }
  value = warpSum(value);
  mass = warpSum(mass);
  if (gradient)
    for (std::int64_t f = lane; f < features; f += 32)
      gradient[f] = static_cast<float>(factor * (mass * exp(z[f] - all.top) / all.sum - labels[f]));
  return value;
}

/// With smoothed labels. @param labels  null: the row's class is `label`.
__device__ double smoothedRow(const float* z, const float* labels, std::int64_t label, float* gradient,
                              std::int64_t features, double factor, double smoothing, int lane) {
  const LogSumExp all = logSumExp(z, features, lane);
  const double log = all.log(), rest = 1 - smoothing, each = smoothing / static_cast<double>(features);
  const auto shareOf = [&](std::int64_t f) {
    return rest * (labels ? static_cast<double>(labels[f]) : f == label ? 1.0 : 0.0) + each;
  };
  double value = 0, mass = 0;
  for (std::int64_t f = lane; f < features; f += 32) {
    const double share = shareOf(f);
    value += share * (log - z[f]);
    mass += share;
  }
  value = warpSum(value);
  mass = warpSum(mass);
  if (gradient)
    for (std::int64_t f = lane; f < features; f += 32)
      gradient[f] = static_cast<float>(factor * (mass * exp(z[f] - all.top) / all.sum - shareOf(f)));
  return value;
}

__device__ double absoluteRow(const float* prediction, const float* labels, float* gradient,
                              std::int64_t features, double factor, int lane) {
  const auto count = static_cast<double>(features);
  double value = 0;
  for (std::int64_t f = lane; f < features; f += 32) {
    const double difference = static_cast<double>(prediction[f]) - labels[f];
    value += fabs(difference);
    if (gradient)  // 0 and NaN stay
      gradient[f] = static_cast<float>(factor *
                                       (difference > 0   ? 1
                                        : difference < 0 ? -1
                                                         : difference) /
                                       count);
  }
  return warpSum(value) / count;
}

__device__ double huberRow(const float* prediction, const float* labels, float* gradient,
                           std::int64_t features, double factor, double delta, int lane) {
  const auto count = static_cast<double>(features);
  double value = 0;
  for (std::int64_t f = lane; f < features; f += 32) {
    const double difference = static_cast<double>(prediction[f]) - labels[f], size = fabs(difference);
    value += size <= delta ? 0.5 * size * size : delta * (size - 0.5 * delta);
    const double slope = difference > delta ? delta : difference < -delta ? -delta : difference;
    if (gradient) gradient[f] = static_cast<float>(factor * slope / count);
  }
  return warpSum(value) / count;
}

__device__ double squaredRow(const float* prediction, const float* labels, float* gradient,
                             std::int64_t features, double factor, int lane) {
  const auto count = static_cast<double>(features);
  double value = 0;
  for (std::int64_t f = lane; f < features; f += 32) {
    const double difference = static_cast<double>(prediction[f]) - labels[f];
    value += difference * difference;
    if (gradient) gradient[f] = static_cast<float>(factor * 2 * difference / count);
  }
  return warpSum(value) / count;
}

/// @param labelOf  the share of a feature.
template <typename Label>
__device__ double binaryRow(const float* z, Label labelOf, float* gradient, std::int64_t features,
                            double factor, int lane) {
  const auto count = static_cast<double>(features);
  double value = 0;
  for (std::int64_t f = lane; f < features; f += 32) {
    const double logit = z[f];
    const double small = exp(-fabs(logit));  // cannot overflow
    value += (logit > 0 ? logit : logit <= 0 ? 0.0 : logit) - logit * labelOf(f) + log1p(small);
    const double sigmoid = (logit >= 0 ? 1 : small) / (1 + small);
    if (gradient) gradient[f] = static_cast<float>(factor * (sigmoid - labelOf(f)) / count);
  }
  return warpSum(value) / count;
}

/// Whether a class is none that the predictions distinguish; one logit distinguishes 0 and 1.
__device__ bool isOutOfRange(const LossCall& call, std::int64_t label) {
  return label < 0 || label >= (call.kind == LossKind::Binary ? 2 : call.features);
}

__device__ double rowLoss(const LossCall& call, std::int64_t row, double factor, int lane) {
  const std::int64_t begin = row * call.features;
  const float* z = call.predictions + begin;
  float* gradient = call.gradient ? call.gradient + begin : nullptr;
  switch (call.kind) {
    case LossKind::Classes: {
      const std::int64_t label = call.classes[row];
      if (!isOutOfRange(call, label) && call.smoothing > 0)
        return smoothedRow(z, nullptr, label, gradient, call.features, factor, call.smoothing, lane);
      if (!isOutOfRange(call, label)) return classRow(z, label, gradient, call.features, factor, lane);
      if (gradient)
        for (std::int64_t f = lane; f < call.features; f += 32) gradient[f] = NAN;
      return NAN;
    }
    case LossKind::SoftLabels:
      if (call.smoothing > 0)
        return smoothedRow(z, call.labels + begin, -1, gradient, call.features, factor, call.smoothing, lane);
      return softLabelRow(z, call.labels + begin, gradient, call.features, factor, lane);
    case LossKind::Squared:
      return squaredRow(z, call.labels + begin, gradient, call.features, factor, lane);
    case LossKind::Binary:
      return binaryRow(
          z,
          [&](std::int64_t f) {
            if (!call.classes) return call.labels[begin + f];
            return isOutOfRange(call, call.classes[row]) ? NAN : static_cast<float>(call.classes[row]);
          },
          gradient, call.features, factor, lane);
    case LossKind::Absolute:
      return absoluteRow(z, call.labels + begin, gradient, call.features, factor, lane);
    case LossKind::Huber:
      return huberRow(z, call.labels + begin, gradient, call.features, factor, call.delta, lane);
  }
  return 0;
}

// Layout of a call's `PartialSums`: the mask's sum, then {weight * loss, weight} of each block, then the
// first bad row of each block.
constexpr std::int64_t kMaskSum = 0, kBlockSums = 1, kBadRows = kBlockSums + 2 * kMostBlocks;
static_assert(kBadRows + kMostBlocks == kMostLossSums);

__device__ double givenNormaliser(const LossCall& call) {
  return call.normaliserAt ? *call.normaliserAt : call.normaliser;
}

/// The sum of the mask, if it normalises the gradient.
__global__ void __launch_bounds__(kBlockThreads) maskSumKernel(LossCall call, PartialSums partial) {
  if (givenNormaliser(call) != 0) return;  // the same in all blocks
  double sums[1] = {0};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
#pragma unroll 4  // loads several values before adding
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
       row < call.rows; row += step)
    sums[0] += call.mask[row];
  if (sumOverGrid(sums, partial.numbers + kBlockSums, partial.counters) && threadIdx.x == 0)
    partial.numbers[kMaskSum] = sums[0];
}

/// Whether the row's class is out of range. A row of weight 0 may have any class.
__device__ bool isBad(const LossCall& call, std::int64_t row, double weight) {
  return call.classes && weight != 0 && isOutOfRange(call, call.classes[row]);
}

/// One warp per row. The block that finishes last adds the blocks' sums in order.
__global__ void __launch_bounds__(kBlockThreads) lossKernel(LossCall call, PartialSums partial) {
  __shared__ long long firstBad;
  if (threadIdx.x == 0) firstBad = call.rows;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  const double given = givenNormaliser(call);
  const double divisor = given != 0  ? given
                         : call.mask ? partial.numbers[kMaskSum]
                                     : static_cast<double>(call.rows);
  double sums[2] = {0, 0};
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (kBlockThreads / 32);
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (kBlockThreads / 32) + threadIdx.x / 32;
       row < call.rows; row += warps) {
    const double weight = call.mask ? call.mask[row] : 1.0;
    double value = 0;
    if (weight != 0)
      value = weight * rowLoss(call, row, weight / divisor, lane);
    else if (call.gradient)  // a row of weight 0 may contain anything
      for (std::int64_t f = lane; f < call.features; f += 32) call.gradient[row * call.features + f] = 0;
    if (lane != 0) continue;
    sums[0] += value;
    // An invalid weight makes the sum NaN for the host's check; a plain sum of -1 and 1 would hide it.
    sums[1] += weight >= 0 && weight < INFINITY ? weight : NAN;
    if (isBad(call, row, weight)) atomicMin(&firstBad, static_cast<long long>(row));
  }
  __syncthreads();
  auto* const badRows = reinterpret_cast<long long*>(partial.numbers + kBadRows);
  if (threadIdx.x == 0) badRows[blockIdx.x] = firstBad;
  if (!sumOverGrid(sums, partial.numbers + kBlockSums, partial.counters)) return;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kBlockThreads)
    atomicMin(&firstBad, __ldcg(badRows + block));
  __syncthreads();
  if (threadIdx.x != 0) return;
  const bool allGood = firstBad >= call.rows;
  call.value[0] = sums[0];
  call.value[1] = sums[1];
  call.value[2] = allGood ? -1.0 : static_cast<double>(firstBad);
  call.value[3] = allGood ? 0.0 : static_cast<double>(call.classes[firstBad]);
}

}  // namespace

cudaError_t launchLoss(const LossCall& call, const PartialSums& partial, cudaStream_t stream) {
  if (call.mask && (call.normaliserAt || call.normaliser == 0)) {
    maskSumKernel<<<blocksFor(call.rows, 4 * kBlockThreads), kBlockThreads, 0, stream>>>(call, partial);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  lossKernel<<<blocksFor(call.rows, kBlockThreads / 32), kBlockThreads, 0, stream>>>(call, partial);
  return cudaGetLastError();
}

}  // namespace muster::cuda
