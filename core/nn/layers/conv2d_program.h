#pragma once

#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/linear.h"
#include "muster/core/ops/conv2d.h"

namespace muster {

/// A planned convolution as a layer: the plan says in which layouts it takes and gives activations.
class Conv2dProgram final : public LinearProgram<Conv2dPlan> {
 public:
  using LinearProgram::LinearProgram;
  Layout inputLayout() const override { return plan().inputLayout(); }
  Layout outputLayout() const override { return plan().outputLayout(); }
};

/// Softmax wants its channels in one row, which a convolution's output is not.
inline void requireElementwise(std::string_view layer, Activation activation) {
  require(activation != Activation::Softmax,
          "{}: softmax cannot be computed in place here; put an ActivationLayer behind it", layer);
}

}  // namespace muster
