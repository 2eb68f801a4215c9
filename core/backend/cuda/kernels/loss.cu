#include "muster/core/backend/cuda/kernels/loss.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

struct LogSumExp {
  double top, sum;  // of the logits: the largest, and the sum of exp(z - top)
  __device__ double log() const { return top + ::log(sum); }
};

__device__ LogSumExp logSumExp(const float* z, std::int64_t features, int lane) {
  double top = -INFINITY, sum = 0;
  for (std::int64_t f = lane; f < features; f += 32) top = fmax(top, static_cast<double>(z[f]));
  top = warpMax(top);
  for (std::int64_t f = lane; f < features; f += 32) sum += exp(z[f] - top);
  return {top, warpSum(sum)};
}

// Each returns the loss of a row, in all lanes, and writes factor * d(loss)/d(prediction) where `gradient` is
// not null; `gradient` may be `z`: what other lanes need of it is read before.

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
    // A class without mass adds nothing, even where its logit is -infinity.
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

__device__ double binaryRow(const float* z, const float* labels, float* gradient, std::int64_t features,
                            double factor, int lane) {
  const auto count = static_cast<double>(features);
  double value = 0;
  for (std::int64_t f = lane; f < features; f += 32) {
    const double logit = z[f];
    const double small = exp(-fabs(logit));  // never overflows
    value += (logit > 0 ? logit : logit <= 0 ? 0.0 : logit) - logit * labels[f] + log1p(small);
    const double sigmoid = (logit >= 0 ? 1 : small) / (1 + small);
    if (gradient) gradient[f] = static_cast<float>(factor * (sigmoid - labels[f]) / count);
  }
  return warpSum(value) / count;
}

__device__ double rowLoss(const LossCall& call, std::int64_t row, double factor, int lane) {
  const std::int64_t begin = row * call.features;
  const float* z = call.predictions + begin;
  float* gradient = call.gradient ? call.gradient + begin : nullptr;
  switch (call.kind) {
    case LossKind::Classes: {
      const std::int64_t label = call.classes[row];
      if (label >= 0 && label < call.features)
        return classRow(z, label, gradient, call.features, factor, lane);
      if (gradient)
        for (std::int64_t f = lane; f < call.features; f += 32) gradient[f] = NAN;
      return NAN;
    }
    case LossKind::SoftLabels:
      return softLabelRow(z, call.labels + begin, gradient, call.features, factor, lane);
    case LossKind::Squared:
      return squaredRow(z, call.labels + begin, gradient, call.features, factor, lane);
    case LossKind::Binary:
      return binaryRow(z, call.labels + begin, gradient, call.features, factor, lane);
  }
  return 0;
}

/// What the gradient is divided by, in all threads. Every block adds the mask itself, all in the same order.
__device__ double divisorOf(const LossCall& call) {
  __shared__ double shared;
  const double given = call.normaliserAt ? *call.normaliserAt : call.normaliser;
  if (given != 0) return given;
  if (!call.mask) return static_cast<double>(call.rows);
  double sums[1] = {0};
  for (std::int64_t row = threadIdx.x; row < call.rows; row += kBlockThreads) sums[0] += call.mask[row];
  sumOverBlock(sums);
  if (threadIdx.x == 0) shared = sums[0];
  __syncthreads();
  return shared;
}

/// rowSums[row] = {weight * loss, weight}.
__global__ void __launch_bounds__(kBlockThreads) lossRows(LossCall call, double* rowSums) {
  const int lane = threadIdx.x % 32;
  const double divisor = divisorOf(call);
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (kBlockThreads / 32);
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (kBlockThreads / 32) + threadIdx.x / 32;
       row < call.rows; row += warps) {
    const double weight = call.mask ? call.mask[row] : 1.0;
    double value = 0;
    if (weight != 0)
      value = weight * rowLoss(call, row, weight / divisor, lane);
    else if (call.gradient)  // whatever the row holds
      for (std::int64_t f = lane; f < call.features; f += 32) call.gradient[row * call.features + f] = 0;
    if (lane == 0) {
      rowSums[2 * row] = value;
      // What the host reads must show a weight that cannot be: of -1 and 1 the sum would not.
      rowSums[2 * row + 1] = weight >= 0 && weight < INFINITY ? weight : NAN;
    }
  }
}

/// The first row whose class is out of range, or -1. A row of weight 0 may hold any.
__device__ std::int64_t firstBadRow(const LossCall& call) {
  __shared__ long long first;
  if (threadIdx.x == 0) first = call.rows;
  __syncthreads();
  if (call.kind == LossKind::Classes)
    for (std::int64_t row = threadIdx.x; row < call.rows; row += kBlockThreads)
      if ((call.classes[row] < 0 || call.classes[row] >= call.features) &&
          !(call.mask && call.mask[row] == 0)) {
        atomicMin(&first, static_cast<long long>(row));
        break;
      }
  __syncthreads();
  return first < call.rows ? first : -1;
}

__global__ void __launch_bounds__(kBlockThreads) lossTotal(LossCall call, const double* rowSums) {
  double sums[2] = {0, 0};
  for (std::int64_t row = threadIdx.x; row < call.rows; row += kBlockThreads) {
    sums[0] += rowSums[2 * row];
    sums[1] += rowSums[2 * row + 1];
  }
  sumOverBlock(sums);
  const std::int64_t bad = firstBadRow(call);
  if (threadIdx.x != 0) return;
  call.value[0] = sums[0];
  call.value[1] = sums[1];
  call.value[2] = static_cast<double>(bad);
  call.value[3] = bad < 0 ? 0.0 : static_cast<double>(call.classes[bad]);
}

}  // namespace

cudaError_t launchLoss(const LossCall& call, double* scratch, cudaStream_t stream) {
  lossRows<<<blocksFor(call.rows, kBlockThreads / 32), kBlockThreads, 0, stream>>>(call, scratch);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  lossTotal<<<1, kBlockThreads, 0, stream>>>(call, scratch);
  return cudaGetLastError();
}

}  // namespace muster::cuda
