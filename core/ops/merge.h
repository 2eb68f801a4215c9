#pragma once

#include <cstdint>
#include <span>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Sums of squares that say how large a distance is beside what it is measured from.
struct Spread {
  double distance = 0;
  double norm = 0;
};

/// Replaces elements [begin, end) of every replica, and of `mergedCopy` where that is defined, by their weighted
/// mean: sum_w weights[w] * replicas[w] / sum_w weights[w], accumulated in float64 in the order of the
/// replicas. Replicas of weight 0 do not contribute but receive the mean. One contributor is copied, bit for
/// bit. Equal float32 replicas stay as they are, equal float64 ones up to rounding.
///
/// @param replicas  float32 or float64, all of one type and size, RowMajor, on one device; at most 32 on a
/// GPU.
/// @param weights   one each, >= 0, not all 0.
/// @throws InvalidArgument if types or sizes differ. Elements outside [begin, end) are not touched, so
/// several threads may each take a slice. Source: McDonald et al. 2010, "Distributed training strategies for
/// the structured perceptron" (the weighted parameter mixture).
void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Context& context);

/// `weightedMean`, which in the same pass over memory says how far apart the replicas were: distances[w]
/// becomes |x_w - m|^2 over [begin, end) with the replica as it was and the mean not yet rounded,
/// distances[W] becomes |m|^2; in float64 and in a fixed order. Replicas of weight 0 have a distance, too.
/// @param distances  float64 [W + 1] on the replicas' device. On a GPU enqueued, as the mean.
void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Tensor& distances, Context& context);

/// What the distances say of all contributors: sum_w weights[w] distances[w] / sum_w weights[w], and |m|^2;
/// as `weightedSpread`. @param distances  on the CPU.
Spread spreadOf(std::span<const double> distances, std::span<const double> weights);

/// As `weightedMean`, for statistics blocks of Moments: element i of the first half is a mean, element i of
/// the second half the variance that goes with it. mean = sum p m; variance = sum p (v + m^2) - mean^2, in
/// float64, not below 0. [begin, end) counts in the first half.
void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                     std::int64_t begin, std::int64_t end, Context& context);

/// sqrt(sum of distances / sum of norms) over slices, in their order; 0 where the mean is 0.
double relativeDistance(std::span<const Spread> slices);

/// The spread of elements [begin, end) of the replicas about their weighted mean, in float64 and in a fixed
/// order: sum_w weights[w] |x_w - m|^2 / sum_w weights[w], and |m|^2. Replicas of weight 0 do not count.
/// Changes nothing. On a GPU it waits for the result.
/// @param replicas  float32 or float64, all of one type and size, on one device.
/// @throws InvalidArgument as `weightedMean`. Several threads may each take a slice.
Spread weightedSpread(std::span<const Tensor> replicas, std::span<const double> weights, std::int64_t begin,
                      std::int64_t end, Context& context);

namespace cuda {
/// `distances` may be undefined.
void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Tensor& distances, Context& context);
void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                     std::int64_t begin, std::int64_t end, Context& context);
Spread weightedSpread(std::span<const Tensor> replicas, std::span<const double> weights, std::int64_t begin,
                      std::int64_t end, Context& context);
}  // namespace cuda

namespace cpu {
/// Squared distance of one replica from the mean, and the mean's squared norm.
Spread distanceOf(const Tensor& replica, std::span<const Tensor> replicas, std::span<const double> weights,
                  std::int64_t begin, std::int64_t end);
Spread weightedSpread(std::span<const Tensor> replicas, std::span<const double> weights, std::int64_t begin,
                      std::int64_t end);
void weightedMean(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                  std::int64_t begin, std::int64_t end, Context& context);
void weightedMoments(std::span<const Tensor> replicas, std::span<const double> weights, Tensor& mergedCopy,
                     std::int64_t begin, std::int64_t end, Context& context);
}  // namespace cpu

}  // namespace muster
