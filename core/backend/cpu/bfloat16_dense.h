#pragma once

#include "muster/core/backend/cpu/onednn_pass.h"
#include "muster/core/ops/dense.h"

namespace muster::cpu {

/// A dense layer's products by oneDNN with factors rounded to bf16. Arguments are those of DensePlan, which
/// checks them.
class BFloat16Dense {
 public:
  BFloat16Dense(const DenseShape& shape, Context& context);

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
    forward_->run({x.raw(), weight.raw(), bias.defined() ? bias.raw() : noBias_.raw(), y.raw()});
  }
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) {
    backwardData_->run({gradY.raw(), weight.raw(), gradX.raw()});
  }
  void gradWeight(const Tensor& x, const Tensor& gradY, Tensor& gradWeight) {
    gradWeight_->run({gradY.raw(), x.raw(), gradWeight.raw()});
  }

 private:
  Tensor noBias_;  // zeros
  std::unique_ptr<Pass> forward_, backwardData_, gradWeight_;
};

}  // namespace muster::cpu
