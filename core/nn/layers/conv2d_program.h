#pragma once

#include <cstddef>
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

/// The checks that every layer of two-dimensional convolution shares. @param type  begins the message.
/// @throws InvalidArgument naming the option.
template <typename Convolution>
void requireConvolution2d(std::string_view type, const Convolution& layer) {
  require(layer.outChannels >= 1, "{}: outChannels must be at least 1, got {}", type, layer.outChannels);
  require(layer.groups >= 1 && layer.outChannels % layer.groups == 0,
          "{}: groups must be at least 1 and divide outChannels, got {} and {}", type, layer.groups,
          layer.outChannels);
  for (std::size_t i = 0; i < 2; ++i) {
    require(layer.kernel[i] >= 1 && layer.stride[i] >= 1 && layer.dilation[i] >= 1,
            "{}: kernel, stride and dilation must be at least 1, got {}, {} and {}", type, layer.kernel[i],
            layer.stride[i], layer.dilation[i]);
    require(layer.padding[i] >= 0, "{}: padding cannot be negative, got {}", type, layer.padding[i]);
  }
}

/// Softmax wants its channels in one row, which a convolution's output is not.
inline void requireElementwise(std::string_view layer, Activation activation) {
  require(activation != Activation::Softmax,
          "{}: softmax cannot be computed in place here; put an ActivationLayer behind it", layer);
}

}  // namespace muster
