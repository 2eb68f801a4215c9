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
  return linearParameters(shape.weight(), outChannels, shape.inChannels / groups * window,
                          outChannels / groups * window, init, bias);
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
  requireConvolution2d(kType, *this);
  requireElementwise(kType, activation);
  init.validate();
}

}  // namespace muster
