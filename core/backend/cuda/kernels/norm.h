#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/channel_sums.h"
#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// y = (x - mean) * scale + shift by channel, then ReLU if `relu`. gradX = a * g + (b * (x - mean) + c).
struct ChannelConstants {
  double *meanOf, *varianceOf, *inverseOf;  // inverse: 1 / sqrt(variance + epsilon)
  float *mean, *scale, *shift, *a, *b, *c;
};

struct BatchNormCall {
  ChannelShape shape;
  ChannelConstants constants;
  double epsilon;
  bool relu;
  PartialSums partial;
};

/// sums [2, channels]: the sums of x and of x^2, in float64.
cudaError_t launchChannelMoments(const BatchNormCall& call, const float* x, double* sums,
                                 cudaStream_t stream);
/// Computes mean and variance from sums over `count` values per channel, and the constants for `normalise`;
/// gamma and beta may be null.
cudaError_t launchConstantsOfSums(const BatchNormCall& call, const double* sums, double count,
                                  const float* gamma, const float* beta, cudaStream_t stream);
/// As above, from given statistics.
cudaError_t launchConstantsOf(const BatchNormCall& call, const float* mean, const float* variance,
                              const float* gamma, const float* beta, cudaStream_t stream);
cudaError_t launchNormalise(const BatchNormCall& call, const float* x, float* y, cudaStream_t stream);
cudaError_t launchMoveStatistics(const BatchNormCall& call, double momentum, float* mean, float* variance,
                                 cudaStream_t stream);
/// sums [2, channels]: the sums of g and of g times the normalised x; gradGamma and gradBeta may be null.
cudaError_t launchGradientSums(const BatchNormCall& call, const float* x, const float* gradY, double* sums,
                               float* gradGamma, float* gradBeta, cudaStream_t stream);
/// @param sums  null: the statistics do not depend on x.
cudaError_t launchBatchNormGradient(const BatchNormCall& call, const float* x, const float* gradY,
                                    const double* sums, double count, float* gradX, cudaStream_t stream);

/// A row's statistics: the normalised value is (x - mean) * inverse + rest, where `rest` corrects the mean's
/// rounding to float32.
struct RowMoments {
  float mean, inverse, rest;
};
struct LayerNormCall {
  std::int64_t rows, features;
  double epsilon;
  RowMoments* moments;  // [rows]
};
/// gamma and beta may be null.
cudaError_t launchLayerNorm(const LayerNormCall& call, const float* x, const float* gamma, const float* beta,
                            float* y, cudaStream_t stream);
cudaError_t launchLayerNormGradient(const LayerNormCall& call, const float* x, const float* gamma,
                                    const float* gradY, float* gradX, cudaStream_t stream);
cudaError_t launchLayerNormParameters(const LayerNormCall& call, const float* x, const float* gradY,
                                      float* gradGamma, float* gradBeta, const PartialSums& partial,
                                      cudaStream_t stream);

}  // namespace muster::cuda
