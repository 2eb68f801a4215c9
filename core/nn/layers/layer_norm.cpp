#include "muster/core/nn/layers/layer_norm.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/ops/layer_norm.h"

namespace muster {
namespace {

class LayerNormProgram final : public ModuleProgram {
 public:
  LayerNormProgram(const LayerNormShape& shape, const ModuleBinding& binding, Context& context)
      : rows_(shape.input()), plan_(planLayerNorm(shape, context)) {
    if (binding.parameters.empty()) return;
    gamma_ = binding.parameters[0];
    beta_ = binding.parameters[1];
    if (!binding.training) return;
    gradGamma_ = binding.gradients[0];
    gradBeta_ = binding.gradients[1];
  }

  bool gradientInPlace() const override { return plan_->gradientInPlace(); }
  BackwardReads backwardReads() const override { return {.input = true, .output = false}; }
  bool recordable() const override { return true; }

  void forward(const Tensor& x, Tensor& y, const StepInfo&) override {
    Tensor rows = y.reshape(rows_);
    plan_->forward(x.reshape(rows_), gamma_, beta_, rows);
  }

  void backward(const Tensor& x, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    Tensor rows = gradX.defined() ? gradX.reshape(rows_) : Tensor();
    plan_->backward(x.reshape(rows_), gamma_, gradY.reshape(rows_), rows, gradGamma_, gradBeta_);
  }

 private:
  Shape rows_;
  std::unique_ptr<LayerNormPlan> plan_;
  Tensor gamma_, beta_, gradGamma_, gradBeta_;
};

}  // namespace

Shape LayerNorm::outputShape(const Shape& input) const {
  require((input.rank() == 1 || input.rank() == 2) && input.elements() > 0,
          "layernorm: expected an input [F] or [T, F], got {}", input.toString());
  return input;
}

std::vector<ParameterSpec> LayerNorm::parameters(const Shape& input) const {
  if (!affine) return {};
  const Shape features{input[input.rank() - 1]};
  return {{.name = "gamma", .shape = features, .init = Init::constant(1), .regularised = false},
          {.name = "beta", .shape = features, .regularised = false}};
}

std::unique_ptr<ModuleProgram> LayerNorm::compile(const ModuleBinding& binding, Context& context) const {
  const Shape& input = binding.input();
  const auto features = input[input.rank() - 1];
  const LayerNormShape shape{.rows = input.elements() / features, .features = features, .epsilon = epsilon};
  return std::make_unique<LayerNormProgram>(shape, binding, context);
}

void LayerNorm::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("epsilon", epsilon, "added to the variance", "(0, )");
  f.field("affine", affine, "has the trained factors gamma and summands beta");
}

void LayerNorm::validate() const {
  require(std::isfinite(epsilon) && epsilon > 0, "layernorm: epsilon must be finite and above 0, got {}",
          epsilon);
}

}  // namespace muster
