#pragma once

#include <cstdint>
#include <memory>

#include "muster/core/device/context.h"
#include "muster/core/ops/activation.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// The sizes of a batch normalisation.
struct BatchNormShape {
  Shape input{1, 1};  ///< [N, C] or [N, C, H, W]
  /// Added to the variance before the root.
  double epsilon = 1e-5;
  /// Identity or ReLU, computed in the same pass.
  Activation activation = Activation::Identity;

  std::int64_t channels() const { return input[1]; }
  /// Number of values for a channel's statistics: N, or N H W.
  std::int64_t valuesPerChannel() const { return input.elements() / input[1]; }
  /// @throws InvalidArgument naming the values.
  void validate() const;
};

/// Batch normalisation planned for one shape and layout, which all activations share: y = activation(gamma (x
/// - mean) / sqrt(variance + epsilon) + beta), with mean and (biased) variance of each channel, either the
/// batch's or given ones. Source: Ioffe and Szegedy 2015.
///
/// Both directions have two halves, so that workers can add their sums between them:
///
///     plan.sums(x, sums);                                        // reads x
///     plan.normalise(x, sums, count, gamma, beta, y);            // reads x, writes y
///     plan.gradientSums(x, gradY, sums, gradGamma, gradBeta);    // reads x and gradY
///     plan.gradient(x, gradY, sums, count, gradX);               // reads x and gradY, writes gradX
///
/// Sums are float64, in an order that does not depend on the number of threads. x, y, gradY and gradX are
/// float32 [N, C] or [N, C, H, W] in the plan's layout; y is not x; gradX is not x, and is gradY only if
/// the plan is `gradientInPlace`; gamma and beta are float32 [C], or undefined: 1 and 0. One thread at a
/// time; running it allocates nothing.
class BatchNormPlan {
 public:
  virtual ~BatchNormPlan() = default;
  virtual Layout layout() const = 0;
  /// Whether gradX may be gradY.
  virtual bool gradientInPlace() const { return false; }

  /// Overwrites `sums`, float64 [2, C]: of x, and of x^2.
  virtual void sums(const Tensor& x, Tensor& sums) = 0;
  /// With mean and variance from `sums` over `count` values per channel. Keeps what the backward pass and
  /// `moveStatistics` need.
  virtual void normalise(const Tensor& x, const Tensor& sums, double count, const Tensor& gamma,
                         const Tensor& beta, Tensor& y) = 0;
  /// With given statistics, float32 [C] each. Keeps what the backward pass needs.
  virtual void normaliseBy(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& gamma,
                           const Tensor& beta, Tensor& y) = 0;
  /// After `normalise`: statistic = (1 - momentum) statistic + momentum (that of the batch), float32 [C]. A
  /// channel keeps both if one would not be finite in float32: the variance of finite values may overflow it.
  virtual void moveStatistics(double momentum, Tensor& mean, Tensor& variance) = 0;

  /// Overwrites `sums`, float64 [2, C]: of g, and of g (x - mean) / sqrt(variance + epsilon), where g is
  /// gradY after the activation's derivative. Also overwrites gradBeta and gradGamma, which may both be
  /// undefined.
  virtual void gradientSums(const Tensor& x, const Tensor& gradY, Tensor& sums, Tensor& gradGamma,
                            Tensor& gradBeta) = 0;
  /// After `normalise`: overwrites gradX; `sums` are divided by `count`.
  virtual void gradient(const Tensor& x, const Tensor& gradY, const Tensor& sums, double count,
                        Tensor& gradX) = 0;
  /// After `normaliseBy`, whose statistics do not depend on x: overwrites gradX.
  virtual void gradientBy(const Tensor& x, const Tensor& gradY, Tensor& gradX) = 0;
};

/// @throws InvalidArgument for an invalid shape, or a layout other than RowMajor for [N, C].
std::unique_ptr<BatchNormPlan> planBatchNorm(const BatchNormShape& shape, Layout layout, Context& context);

namespace cpu {
std::unique_ptr<BatchNormPlan> planBatchNorm(const BatchNormShape& shape, Layout layout, Context& context);
}
namespace cuda {
std::unique_ptr<BatchNormPlan> planBatchNorm(const BatchNormShape& shape, Layout layout, Context& context);
}

}  // namespace muster
