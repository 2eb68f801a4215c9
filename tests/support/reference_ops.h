#pragma once

#include "muster/core/ops/activation.h"
#include "muster/core/ops/batch_norm.h"
#include "muster/core/ops/conv2d.h"
#include "muster/core/ops/conv_transpose2d.h"
#include "muster/core/ops/dense.h"
#include "muster/core/ops/loss.h"
#include "muster/core/ops/pad2d.h"
#include "muster/core/ops/pool2d.h"
#include "muster/core/ops/upsample2d.h"
#include "tests/support/arrays.h"

/// Every operation in float64 with plain loops, to compare with the backends. Does not use the library's
/// kernels.
namespace muster::test::reference {

Array conv2d(const Conv2dShape& shape, const Array& x, const Array& weight, const Array& bias);
Array conv2dBackwardData(const Conv2dShape& shape, const Array& gradY, const Array& weight);
/// {gradWeight, gradBias}
std::pair<Array, Array> conv2dBackwardWeights(const Conv2dShape& shape, const Array& x, const Array& gradY);

Array convTranspose2d(const ConvTranspose2dShape& shape, const Array& x, const Array& weight,
                      const Array& bias);
struct ConvTranspose2dGradients {
  Array x, weight, bias;
};
ConvTranspose2dGradients convTranspose2dBackward(const ConvTranspose2dShape& shape, const Array& x,
                                                 const Array& weight, const Array& gradY);

Array pad2d(const Array& x, const Padding2d& padding);

/// To [N, C, height, width].
Array upsample2d(UpsampleMode mode, const Array& x, std::int64_t height, std::int64_t width);
/// To [N, C, height, width] of the smaller image.
Array upsample2dBackward(UpsampleMode mode, const Array& gradY, std::int64_t height, std::int64_t width);

Array pool2d(const Pool2dShape& shape, const Array& x);
Array pool2dBackward(const Pool2dShape& shape, const Array& x, const Array& gradY);

/// {mean, variance} of the batch, [C] each; the variance is biased.
std::pair<Array, Array> channelMoments(const Array& x);
/// Normalises with the batch's statistics, or with the given ones.
Array batchNorm(const BatchNormShape& shape, const Array& x, const Array& gamma, const Array& beta);
Array batchNorm(const BatchNormShape& shape, const Array& x, const Array& mean, const Array& variance,
                const Array& gamma, const Array& beta);
struct BatchNormGradients {
  Array x, gamma, beta;
};
BatchNormGradients batchNormBackward(const BatchNormShape& shape, const Array& x, const Array& gamma,
                                     const Array& beta, const Array& gradY);
BatchNormGradients batchNormBackward(const BatchNormShape& shape, const Array& x, const Array& mean,
                                     const Array& variance, const Array& gamma, const Array& beta,
                                     const Array& gradY);

/// For normalising [N, C] or [N, C, H, W]: the largest factor 1 / sqrt(variance + epsilon) over the channels,
/// and the largest distance of two normalised values.
struct Spread {
  double inverse, distance;
};
Spread spreadOf(const Array& x, double epsilon);

/// Normalises each row of x [N, F].
Array layerNorm(const Array& x, const Array& gamma, const Array& beta, double epsilon);
/// As for batch normalisation.
BatchNormGradients layerNormBackward(const Array& x, const Array& gamma, const Array& gradY, double epsilon);

Array dense(const Array& x, const Array& weight, const Array& bias);
Array denseBackwardData(const Array& gradY, const Array& weight);
/// {gradWeight, gradBias}
std::pair<Array, Array> denseBackwardWeights(const Array& x, const Array& gradY);

Array activation(Activation kind, const Array& x);
Array activationBackward(Activation kind, const Array& x, const Array& gradY);

/// Each element of row n, e-th of its row, is zeroed where keep(n, e) is false.
Array dropout(const Array& x, double rate, const std::function<bool(std::int64_t n, std::int64_t e)>& keep);

/// The examples' losses [N]; labels [N] are class indices, [N, F] are values.
Array losses(Loss kind, const Array& predictions, const Array& labels);
/// d(sum of mask * losses / normaliser) / d predictions.
Array lossGradient(Loss kind, const Array& predictions, const Array& labels, const Array& mask,
                   double normaliser);

}  // namespace muster::test::reference
