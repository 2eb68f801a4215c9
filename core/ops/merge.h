#pragma once

#include <cstdint>
#include <span>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// A squared distance, and the squared norm of what it is measured from.
struct Spread {
  double distance = 0;
  double norm = 0;
};

/// Replaces elements [begin, end) of every replica, and of `mergedCopy` if it is defined, by their weighted
/// mean: sum_w weights[w] * replicas[w] / sum_w weights[w], added in float64 in the order of the replicas.
/// Replicas of weight 0 do not contribute but receive the mean. A single contributor is copied, bit for bit.
/// Equal float32 replicas do not change, equal float64 ones only by rounding.
///
/// @param replicas  float32 or float64, of one type and size, RowMajor, on one device; at most 32 on a GPU.
/// @param weights   one for each replica, >= 0, not all 0.
/// @throws InvalidArgument if types or sizes differ.
/// @param refused   float64 [1] each, on the replicas' device, read when the work is done: unless all are 0,
///                  nothing is written (see UpdateGuard).
/// Elements outside [begin, end) are not written, so several threads may each take a slice. Source: McDonald
/// et al. 2010, "Distributed training strategies for the structured perceptron" (the weighted parameter
/// mixture).
void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Context& context,
                  std::span<const Tensor> refused = {});

/// `weightedMean`, which in the same pass also measures the replicas' distances: distances[w] becomes |x_w -
/// m|^2 over [begin, end), with the replica before the merge and the mean before rounding; distances[W]
/// becomes |m|^2; in float64 and in a fixed order. Replicas of weight 0 have a distance, too.
/// @param distances  float64 [W + 1] on the replicas' device. Enqueued on a GPU, as the mean.
void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Tensor& distances, Context& context);

/// The spread from these distances: sum_w weights[w] distances[w] / sum_w weights[w], and |m|^2; equals
/// `weightedSpread`. @param distances  on the CPU.
Spread spreadOf(std::span<const double> distances, std::span<const double> weights);

/// As `weightedMean`, for statistics blocks with rule Moments: element i of the first half is a mean, element
/// i of the second half its variance. mean = sum p m; variance = sum p (v + m^2) - mean^2, in float64, not
/// below 0. [begin, end) counts in the first half.
void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                     std::int64_t begin, std::int64_t end, Context& context,
                     std::span<const Tensor> refused = {});

/// sqrt(sum of distances / sum of norms) over slices, in order; 0 if the mean is 0.
double relativeDistance(std::span<const Spread> slices);

/// The spread of elements [begin, end) of the replicas about their weighted mean, in float64 and in a fixed
/// order: sum_w weights[w] |x_w - m|^2 / sum_w weights[w], and |m|^2. Replicas of weight 0 do not count.
/// Writes nothing. Waits for the result on a GPU.
/// @param replicas  float32 or float64, of one type and size, on one device.
/// @throws InvalidArgument as `weightedMean`. Several threads may each take a slice.
Spread weightedSpread(std::span<const Tensor> replicas, std::span<const double> weights, std::int64_t begin,
                      std::int64_t end, Context& context);

namespace cpu {
/// `distances` may be undefined.
void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Tensor& distances, Context& context);
void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                     std::int64_t begin, std::int64_t end, Context& context);
Spread weightedSpread(std::span<const Tensor> replicas, std::span<const double> weights, std::int64_t begin,
                      std::int64_t end, Context& context);
}  // namespace cpu
namespace cuda {
/// `distances` may be undefined.
void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Tensor& distances, Context& context,
                  std::span<const Tensor> refused);
void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                     std::int64_t begin, std::int64_t end, Context& context, std::span<const Tensor> refused);
Spread weightedSpread(std::span<const Tensor> replicas, std::span<const double> weights, std::int64_t begin,
                      std::int64_t end, Context& context);
}  // namespace cuda

}  // namespace muster
