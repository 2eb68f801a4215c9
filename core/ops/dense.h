#pragma once

#include <cstdint>
#include <memory>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// The sizes of a dense layer.
struct DenseShape {
  std::int64_t batch = 1, inFeatures = 1, outFeatures = 1;
};

/// A fully connected layer planned for one shape: y = x weight^T + bias. RowMajor float32: x [N, in], weight
/// [out, in], bias [out] (may be undefined), y [N, out]. On a GPU each tensor begins at a multiple of 16
/// bytes, else InvalidArgument: an owning tensor does, a view of some rows may not. One thread at a time.
class DensePlan {
 public:
  virtual ~DensePlan() = default;
  /// Whether `backwardWeights` and `backwardData` may run at once: neither writes memory that the other uses.
  virtual bool gradientsApart() const { return false; }
  virtual void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) = 0;
  /// gradX = gradY weight; overwritten.
  virtual void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) = 0;
  /// gradWeight = gradY^T x and gradBias = sum of gradY over the batch; overwritten.
  virtual void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight,
                               Tensor& gradBias) = 0;
};

/// @throws InvalidArgument unless all sizes are positive.
std::unique_ptr<DensePlan> planDense(const DenseShape& shape, Context& context);

namespace cpu {
std::unique_ptr<DensePlan> planDense(const DenseShape& shape, Context& context);
}
namespace cuda {
std::unique_ptr<DensePlan> planDense(const DenseShape& shape, Context& context);
}

}  // namespace muster
