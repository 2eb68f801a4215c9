#include "muster/core/nn/layers/combine.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/fused_activation.h"

namespace muster {
namespace {

class CombineProgram final : public VertexProgram {
 public:
  CombineProgram(const Combine& options, const ModuleBinding& binding, Context& context)
      : combination_(options.combination),
        passes_(options.combination == Combination::Add),
        layout_(binding.offered()),
        activation_(options.activation, binding.input(), binding.offered(), binding.training,
                    context.device()),
        context_(context) {}
  Layout inputLayout() const override { return layout_; }
  Layout outputLayout() const override { return layout_; }
  bool passesGradient() const override { return passes_; }
  BackwardReads backwardReads() const override {
    const bool ofInputs = combination_ == Combination::Product || combination_ == Combination::Max;
    return {.input = ofInputs, .output = activation_.readsOutput()};
  }
  bool recordable() const override { return true; }
  void forwardAll(std::span<const Tensor> x, Tensor& y, const StepInfo&) override {
    combine(combination_, x, activation_.operationOutput(y), context_);
    activation_.forward(y, context_);
  }
  void backwardAll(std::span<const Tensor> x, const Tensor& y, Tensor& gradY, std::span<Tensor> gradX,
                   const StepInfo&) override {
    activation_.backward(y, gradY, context_);
    for (std::size_t i = 0; i < gradX.size(); ++i)
      if (gradX[i].defined()) combineBackward(combination_, x, i, gradY, gradX[i], context_);
  }

 private:
  Combination combination_;
  bool passes_;
  Layout layout_;
  FusedActivation activation_;
  Context& context_;
};

}  // namespace

Shape Combine::outputShape(std::span<const Shape> inputs) const {
  require(!inputs.empty(), "combine: it has no inputs");
  require(combination != Combination::Subtract || inputs.size() == 2,
          "combine: subtract takes two inputs, got {}", inputs.size());
  for (const auto& input : inputs)
    require(input == inputs.front(), "combine: expected inputs of one shape, got {} and {}",
            inputs.front().toString(), input.toString());
  return inputs.front();
}

std::unique_ptr<VertexProgram> Combine::compile(const ModuleBinding& binding, Context& context) const {
  return std::make_unique<CombineProgram>(*this, binding, context);
}

void Combine::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("combination", combination, "how inputs of one shape become one, element by element");
  f.field("activation", activation, detail::kActivationField);
}

void Combine::validate() const {
  require(activation != Activation::Softmax,
          "combine: activation cannot be softmax, which needs whole rows; add an ActivationLayer after it");
}

}  // namespace muster
