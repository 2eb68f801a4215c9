#include "muster/core/nn/layers/dense.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/fused_activation.h"
#include "muster/core/ops/dense.h"

namespace muster {
namespace {

class DenseProgram final : public ModuleProgram {
 public:
  DenseProgram(std::int64_t units, Activation activation, const ModuleBinding& binding, Context& context)
      : context_(context),
        plan_(planDense({binding.input[0], binding.input[1], units}, context)),
        activation_(activation, {binding.input[0], units}, Layout::RowMajor, binding.training),
        weight_(binding.parameters[0]) {
    if (binding.parameters.size() > 1) bias_ = binding.parameters[1];
    if (binding.training) gradWeight_ = binding.gradients[0];
    if (binding.gradients.size() > 1) gradBias_ = binding.gradients[1];
  }

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
  Context& context_;
  std::unique_ptr<DensePlan> plan_;
  FusedActivation activation_;
  Tensor weight_, bias_, gradWeight_, gradBias_;
};

std::vector<ParameterSpec> denseParameters(const Shape& input, std::int64_t units, const Init& init,
                                           bool bias) {
  std::vector<ParameterSpec> specs{
      {.name = "weight", .shape = {units, input[0]}, .init = init, .fanIn = input[0], .fanOut = units}};
  if (bias) specs.push_back({.name = "bias", .shape = {units}, .regularised = false});
  return specs;
}

Shape denseOutput(std::string_view type, const Shape& input, std::int64_t units) {
  require(input.rank() == 1 && input[0] > 0, "{}: expected an input [F], got {}", type, input.toString());
  return {units};
}

}  // namespace

Shape Dense::outputShape(const Shape& input) const {
  return denseOutput(kType, input, units);
}

std::vector<ParameterSpec> Dense::parameters(const Shape& input) const {
  return denseParameters(input, units, init, bias);
}

std::unique_ptr<ModuleProgram> Dense::compile(const ModuleBinding& binding, Context& context) const {
  return std::make_unique<DenseProgram>(units, activation, binding, context);
}

void Dense::fields(Fields& f) {
  f.field("name", name);
  f.field("units", units);
  f.field("activation", activation);
  init.field("init", f);
  f.field("bias", bias);
}

void Dense::validate() const {
  require(units >= 1, "dense: units must be at least 1, got {}", units);
  init.validate();
}

Shape Output::outputShape(const Shape& input) const {
  return denseOutput(kType, input, classes);
}

std::vector<ParameterSpec> Output::parameters(const Shape& input) const {
  return denseParameters(input, classes, init, bias);
}

std::unique_ptr<ModuleProgram> Output::compile(const ModuleBinding& binding, Context& context) const {
  // Softmax and sigmoid are part of their losses, which take logits.
  const auto own = loss == Loss::MeanSquaredError ? activation : Activation::Identity;
  return std::make_unique<DenseProgram>(classes, own, binding, context);
}

void Output::fields(Fields& f) {
  f.field("name", name);
  f.field("classes", classes);
  f.field("loss", loss);
  f.field("activation", activation);
  init.field("init", f);
  f.field("bias", bias);
}

void Output::validate() const {
  require(classes >= 1, "output: classes must be at least 1, got {}", classes);
  require(loss != Loss::NegativeLogLikelihood || activation == Activation::Softmax,
          "output: the loss nll goes with activation softmax, got {}", nameOf(activation));
  require(loss != Loss::BinaryCrossEntropy || activation == Activation::Sigmoid,
          "output: the loss bce goes with activation sigmoid, got {}", nameOf(activation));
  init.validate();
}

}  // namespace muster
