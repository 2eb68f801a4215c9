#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "muster/core/nn/layers/fused_activation.h"
#include "muster/core/nn/module.h"

namespace muster {

/// The parameters of a layer that is linear in its input: a weight and, if `bias`, a bias [outputs].
inline std::vector<ParameterSpec> linearParameters(const Shape& weight, std::int64_t outputs,
                                                   std::int64_t fanIn, std::int64_t fanOut, const Init& init,
                                                   bool bias) {
  std::vector<ParameterSpec> specs{
      {.name = "weight", .shape = weight, .init = init, .fanIn = fanIn, .fanOut = fanOut}};
  if (bias) specs.push_back({.name = "bias", .shape = {outputs}, .regularised = false});
  return specs;
}

/// The program of such a layer: a plan with `forward`, `backwardData` and `backwardWeights` (`DensePlan`,
/// `Conv2dPlan`), followed by an activation.
template <typename Plan>
class LinearProgram : public ModuleProgram {
 public:
  /// @param activation  planned for the plan's output.
  LinearProgram(std::unique_ptr<Plan> plan, FusedActivation activation, const ModuleBinding& binding,
                Context& context)
      : plan_(std::move(plan)),
        context_(context),
        activation_(std::move(activation)),
        weight_(binding.parameters[0]) {
    activation_.offerTo(*plan_);
    if (binding.parameters.size() > 1) bias_ = binding.parameters[1];
    if (binding.training) gradWeight_ = binding.gradients[0];
    if (binding.gradients.size() > 1) gradBias_ = binding.gradients[1];
  }

  BackwardReads backwardReads() const override {
    return {.input = true, .output = activation_.readsOutput()};
  }
  bool recordable() const override { return true; }
  bool readsGradientLate() const override { return plan_->gradientsApart(); }

  void forward(const Tensor& x, Tensor& y, const StepInfo&) override {
    plan_->forward(x, weight_, bias_, activation_.operationOutput(y));
    activation_.forward(y, context_);
  }

  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    activation_.backward(y, gradY, context_);
    context_.onSideStream([&] { plan_->backwardWeights(x, gradY, gradWeight_, gradBias_); });
    if (gradX.defined()) plan_->backwardData(gradY, weight_, gradX);
  }

 protected:
  const Plan& plan() const { return *plan_; }
  Plan& plan() { return *plan_; }
  const FusedActivation& activation() const { return activation_; }

 private:
  std::unique_ptr<Plan> plan_;
  Context& context_;
  FusedActivation activation_;
  Tensor weight_, bias_, gradWeight_, gradBias_;
};

}  // namespace muster
