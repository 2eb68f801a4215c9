#include "muster/core/nn/layers/activation_layer.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"

namespace muster {
namespace {

class ActivationProgram final : public ModuleProgram {
 public:
  ActivationProgram(Activation activation, Layout layout, Context& context)
      : activation_(activation), layout_(layout), context_(context) {}
  Layout inputLayout() const override { return layout_; }
  Layout outputLayout() const override { return layout_; }
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override {
    activationForward(activation_, x, y, context_);
  }
  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (gradX.defined()) activationBackward(activation_, x, y, gradY, gradX, context_);
  }

 private:
  Activation activation_;
  Layout layout_;
  Context& context_;
};

}  // namespace

Shape ActivationLayer::outputShape(const Shape& input) const {
  require(activation != Activation::Softmax || input.rank() >= 1,
          "activation: softmax needs an input [C] or [C, H, W]");
  require(activation != Activation::Softmax || input[input.rank() == 2 ? 1 : 0] > 1,
          "activation: a softmax over one value is always 1, and the input is {}", input.toString());
  return input;
}

std::unique_ptr<ModuleProgram> ActivationLayer::compile(const ModuleBinding& binding,
                                                        Context& context) const {
  const auto layout = activation == Activation::Softmax ? Layout::RowMajor : binding.offered();
  return std::make_unique<ActivationProgram>(activation, layout, context);
}

void ActivationLayer::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("activation", activation, "the function");
}

}  // namespace muster
