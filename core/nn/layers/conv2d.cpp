#include "muster/core/nn/layers/conv2d.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/conv2d_program.h"

namespace muster {
namespace {

Conv2dShape planShape(const Conv2d& layer, const Shape& input) {
  require(input.rank() == 4, "conv2d: expected an input [C, H, W], got {}", input.dropFirst().toString());
  return {.batch = input[0],
          .inChannels = input[1],
          .height = input[2],
          .width = input[3],
          .outChannels = layer.outChannels,
          .kernel = layer.kernel,
          .stride = layer.stride,
          .padding = layer.padding,
          .dilation = layer.dilation,
          .groups = layer.groups};
}

}  // namespace

Shape Conv2d::outputShape(const Shape& input) const {
  const auto shape = planShape(*this, input.prepend(1));
  shape.validate();
  return shape.output().dropFirst();
}

std::vector<ParameterSpec> Conv2d::parameters(const Shape& input) const {
  const auto shape = planShape(*this, input.prepend(1));
  shape.validate();
  const auto window = kernel[0] * kernel[1];
  return linearParameters(shape.weight(), shape.inChannels / groups * window, outChannels / groups * window,
                          init, bias);
}

std::unique_ptr<ModuleProgram> Conv2d::compile(const ModuleBinding& binding, Context& context) const {
  const auto shape = planShape(*this, binding.input());
  auto plan = planConv2d(shape, context, Conv2dChoice::Auto, binding.offered());
  FusedActivation fused(activation, shape.output(), plan->outputLayout(), binding.training, context.device());
  return std::make_unique<Conv2dProgram>(std::move(plan), std::move(fused), binding, context);
}

void Conv2d::fields(Fields& f) {
  f.field("name", name);
  f.field("outChannels", outChannels);
  f.field("kernel", kernel);
  f.field("stride", stride);
  f.field("padding", padding);
  f.field("dilation", dilation);
  f.field("groups", groups);
  f.field("activation", activation);
  init.field("init", f);
  f.field("bias", bias);
}

void Conv2d::validate() const {
  require(outChannels >= 1, "conv2d: outChannels must be at least 1, got {}", outChannels);
  require(groups >= 1 && outChannels % groups == 0,
          "conv2d: groups must be at least 1 and divide outChannels, got {} and {}", groups, outChannels);
  for (int i = 0; i < 2; ++i) {
    require(kernel[i] >= 1 && stride[i] >= 1 && dilation[i] >= 1,
            "conv2d: kernel, stride and dilation must be at least 1, got {}, {} and {}", kernel[i], stride[i],
            dilation[i]);
    require(padding[i] >= 0, "conv2d: padding cannot be negative, got {}", padding[i]);
  }
  requireElementwise(kType, activation);
  init.validate();
}

}  // namespace muster
