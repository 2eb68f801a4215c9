#include "muster/core/nn/layers/conv2d.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/fused_activation.h"

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
          .dilation = layer.dilation};
}

class Conv2dProgram final : public ModuleProgram {
 public:
  Conv2dProgram(const Conv2d& layer, const ModuleBinding& binding, Context& context)
      : Conv2dProgram(layer.activation, planConv2d(planShape(layer, binding.input), context),
                      planShape(layer, binding.input).output(), binding, context) {}

  Layout inputLayout() const override { return plan_->inputLayout(); }
  Layout outputLayout() const override { return plan_->outputLayout(); }

  void forward(const Tensor& x, Tensor& y, const StepInfo&) override {
    plan_->forward(x, weight_, bias_, y);
    activation_.forward(y, context_);
  }

  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    activation_.backward(y, gradY, context_);
    plan_->backwardWeights(x, gradY, gradWeight_, gradBias_);
    if (gradX.defined()) plan_->backwardData(gradY, weight_, gradX);
  }

 private:
  Conv2dProgram(Activation activation, std::unique_ptr<Conv2dPlan> plan, const Shape& output,
                const ModuleBinding& binding, Context& context)
      : context_(context),
        plan_(std::move(plan)),
        activation_(activation, output, plan_->outputLayout(), binding.training),
        weight_(binding.parameters[0]) {
    if (binding.parameters.size() > 1) bias_ = binding.parameters[1];
    if (binding.training) gradWeight_ = binding.gradients[0];
    if (binding.gradients.size() > 1) gradBias_ = binding.gradients[1];
  }

  Context& context_;
  std::unique_ptr<Conv2dPlan> plan_;
  FusedActivation activation_;
  Tensor weight_, bias_, gradWeight_, gradBias_;
};

}  // namespace

Shape Conv2d::outputShape(const Shape& input) const {
  const auto shape = planShape(*this, input.prepend(1));
  shape.validate();
  return shape.output().dropFirst();
}

std::vector<ParameterSpec> Conv2d::parameters(const Shape& input) const {
  const auto shape = planShape(*this, input.prepend(1));
  const auto window = kernel[0] * kernel[1];
  std::vector<ParameterSpec> specs{{.name = "weight",
                                    .shape = shape.weight(),
                                    .init = init,
                                    .fanIn = shape.inChannels * window,
                                    .fanOut = outChannels * window}};
  if (bias) specs.push_back({.name = "bias", .shape = {outChannels}, .regularised = false});
  return specs;
}

std::unique_ptr<ModuleProgram> Conv2d::compile(const ModuleBinding& binding, Context& context) const {
  return std::make_unique<Conv2dProgram>(*this, binding, context);
}

void Conv2d::fields(Fields& f) {
  f.field("name", name);
  f.field("outChannels", outChannels);
  f.field("kernel", kernel);
  f.field("stride", stride);
  f.field("padding", padding);
  f.field("dilation", dilation);
  f.field("activation", activation);
  init.field("init", f);
  f.field("bias", bias);
}

void Conv2d::validate() const {
  require(outChannels >= 1, "conv2d: outChannels must be at least 1, got {}", outChannels);
  for (int i = 0; i < 2; ++i) {
    require(kernel[i] >= 1 && stride[i] >= 1 && dilation[i] >= 1,
            "conv2d: kernel, stride and dilation must be at least 1, got {}, {} and {}", kernel[i], stride[i],
            dilation[i]);
    require(padding[i] >= 0, "conv2d: padding cannot be negative, got {}", padding[i]);
  }
  init.validate();
}

}  // namespace muster
