#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/linear.h"
#include "muster/core/ops/conv2d.h"
#include "muster/core/ops/detail/convolution2d.h"

namespace muster {

/// A planned convolution as a layer; the plan chooses the layouts of its activations.
class Conv2dProgram final : public LinearProgram<Conv2dPlan> {
 public:
  using LinearProgram::LinearProgram;
  Layout inputLayout() const override { return plan().inputLayout(); }
  Layout outputLayout() const override { return plan().outputLayout(); }
  /// Includes a pooling of the output if the plan supports it: the program's output is then the pooled one.
  /// @return whether it does.
  bool fusePool(const Pool2dShape& pool) { return activation().isWithPlan() && plan().fusePool(pool); }
};

/// Softmax needs its channels in one row; a convolution's output is not a row.
inline void requireElementwise(std::string_view layer, Activation activation) {
  require(activation != Activation::Softmax,
          "{}: activation cannot be softmax; add an ActivationLayer after it", layer);
}

// Shared by Conv2d and ConvTranspose2d. `Convolution` is the layer's options, `Sizes` those of its plan.

template <typename Sizes, typename Convolution>
Sizes convolutionSizes(const Convolution& layer, const Shape& input) {
  require(input.rank() == 4, "{}: expected an input [C, H, W], got {}", Convolution::kType,
          input.dropFirst().toString());
  Sizes sizes{.batch = input[0],
              .inChannels = input[1],
              .height = input[2],
              .width = input[3],
              .outChannels = layer.outChannels,
              .kernel = layer.kernel,
              .stride = layer.stride,
              .padding = layer.padding,
              .dilation = layer.dilation,
              .groups = layer.groups};
  if constexpr (requires { sizes.outputPadding; }) sizes.outputPadding = layer.outputPadding;
  sizes.validate();
  return sizes;
}

template <typename Sizes, typename Convolution>
std::vector<ParameterSpec> convolutionParameters(const Convolution& layer, const Shape& input) {
  const auto sizes = convolutionSizes<Sizes>(layer, input.prepend(1));
  const Shape weight = sizes.weight();
  static_cast<void>(weight.elements());  // throws if it is so large that the products below overflow
  const auto window = layer.kernel[0] * layer.kernel[1];
  return linearParameters(weight, layer.outChannels, sizes.inChannels / layer.groups * window,
                          layer.outChannels / layer.groups * window, layer.init, layer.bias);
}

inline std::unique_ptr<ModuleProgram> convolutionProgram(std::unique_ptr<Conv2dPlan> plan,
                                                         const Shape& output, Activation activation,
                                                         const ModuleBinding& binding, Context& context) {
  FusedActivation fused(activation, output, plan->outputLayout(), binding.training, context.device());
  return std::make_unique<Conv2dProgram>(std::move(plan), std::move(fused), binding, context);
}

template <typename Convolution>
void convolutionFields(Convolution& layer, Fields& f) {
  f.field("name", layer.name, detail::kNameField);
  f.field("outChannels", layer.outChannels, "number of output channels", "[1, )");
  f.field("kernel", layer.kernel, "height and width of the window", "[1, )");
  f.field("stride", layer.stride, "step from one window to the next", "[1, )");
  f.field("padding", layer.padding, "zeros at the top and bottom, and at both sides", "[0, )");
  if constexpr (requires { layer.outputPadding; })
    f.field("outputPadding", layer.outputPadding,
            "rows and columns added to the output, less than the stride", "[0, )");
  f.field("dilation", layer.dilation, "distance between the pixels of a window", "[1, )");
  f.field("groups", layer.groups,
          "divides input and output channels; each group of outputs sees its own group of inputs only",
          "[1, )");
  f.field("activation", layer.activation, detail::kActivationField);
  f.field("init", layer.init, detail::kInitField);
  f.field("bias", layer.bias, detail::kBiasField);
}

/// @throws InvalidArgument naming the option.
template <typename Convolution>
void requireConvolution2d(const Convolution& layer) {
  constexpr std::string_view kType = Convolution::kType;
  require(layer.outChannels >= 1, "{}: outChannels must be at least 1, got {}", kType, layer.outChannels);
  require(layer.groups >= 1 && layer.outChannels % layer.groups == 0,
          "{}: groups must be at least 1 and divide outChannels, got {} and {}", kType, layer.groups,
          layer.outChannels);
  detail::requireWindow(kType, layer);
  requireElementwise(kType, layer.activation);
  layer.init.validate();
}

}  // namespace muster
