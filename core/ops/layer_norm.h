#pragma once

#include <cstdint>
#include <memory>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// The sizes of a layer normalisation.
struct LayerNormShape {
  std::int64_t rows = 1, features = 1;
  double epsilon = 1e-5;  ///< added to the variance

  Shape input() const { return {rows, features}; }
  /// @throws InvalidArgument naming the values.
  void validate() const;
};

/// Normalises each row: y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with mean and (biased)
/// variance of the row. x, y and their gradients are float32 [rows, features], gamma, beta and their
/// gradients float32 [features]; RowMajor. gamma and beta may be undefined: 1 and 0. Sums are float64, in an
/// order that does not depend on the number of threads. One thread at a time; running it allocates nothing.
/// Source: Ba et al. 2016.
class LayerNormPlan {
 public:
  virtual ~LayerNormPlan() = default;
  /// Whether gradX may be gradY.
  virtual bool gradientInPlace() const { return false; }
  /// Keeps each row's mean and variance for `backward`.
  virtual void forward(const Tensor& x, const Tensor& gamma, const Tensor& beta, Tensor& y) = 0;
  /// Overwrites gradX, gradGamma and gradBeta, except undefined ones.
  virtual void backward(const Tensor& x, const Tensor& gamma, const Tensor& gradY, Tensor& gradX,
                        Tensor& gradGamma, Tensor& gradBeta) = 0;
};

/// @throws InvalidArgument for an invalid shape.
std::unique_ptr<LayerNormPlan> planLayerNorm(const LayerNormShape& shape, Context& context);

namespace cpu {
std::unique_ptr<LayerNormPlan> planLayerNorm(const LayerNormShape& shape, Context& context);
}
namespace cuda {
std::unique_ptr<LayerNormPlan> planLayerNorm(const LayerNormShape& shape, Context& context);
}

}  // namespace muster
