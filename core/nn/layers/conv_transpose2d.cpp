#include "muster/core/nn/layers/conv_transpose2d.h"

#include "muster/core/nn/layers/conv2d_program.h"
#include "muster/core/ops/conv_transpose2d.h"

namespace muster {
namespace {

ConvTranspose2dShape planShape(const ConvTranspose2d& layer, const Shape& input) {
  require(input.rank() == 4, "convtranspose2d: expected an input [C, H, W], got {}",
          input.dropFirst().toString());
  return {.batch = input[0],
          .inChannels = input[1],
          .height = input[2],
          .width = input[3],
          .outChannels = layer.outChannels,
          .kernel = layer.kernel,
          .stride = layer.stride,
          .padding = layer.padding,
          .outputPadding = layer.outputPadding,
          .dilation = layer.dilation,
          .groups = layer.groups};
}

}  // namespace

Shape ConvTranspose2d::outputShape(const Shape& input) const {
  const auto shape = planShape(*this, input.prepend(1));
  shape.validate();
  return shape.output().dropFirst();
}

std::vector<ParameterSpec> ConvTranspose2d::parameters(const Shape& input) const {
  const auto shape = planShape(*this, input.prepend(1));
  shape.validate();
  const auto window = kernel[0] * kernel[1];
  return linearParameters(shape.weight(), outChannels, shape.inChannels / groups * window,
                          outChannels / groups * window, init, bias);
}

std::unique_ptr<ModuleProgram> ConvTranspose2d::compile(const ModuleBinding& binding,
                                                        Context& context) const {
  const auto shape = planShape(*this, binding.input());
  auto plan = planConvTranspose2d(shape, context, binding.offered());
  FusedActivation fused(activation, shape.output(), plan->outputLayout(), binding.training, context.device());
  return std::make_unique<Conv2dProgram>(std::move(plan), std::move(fused), binding, context);
}

void ConvTranspose2d::fields(Fields& f) {
  f.field("name", name);
  f.field("outChannels", outChannels);
  f.field("kernel", kernel);
  f.field("stride", stride);
  f.field("padding", padding);
  f.field("outputPadding", outputPadding);
  f.field("dilation", dilation);
  f.field("groups", groups);
  f.field("activation", activation);
  init.field("init", f);
  f.field("bias", bias);
}

void ConvTranspose2d::validate() const {
  requireConvolution2d(kType, *this);
  for (std::size_t i = 0; i < 2; ++i)
    require(outputPadding[i] >= 0 && outputPadding[i] < stride[i],
            "convtranspose2d: outputPadding must be at least 0 and below the stride, got {} with stride {}",
            outputPadding[i], stride[i]);
  requireElementwise(kType, activation);
  init.validate();
}

}  // namespace muster
