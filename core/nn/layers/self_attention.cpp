#include "muster/core/nn/layers/self_attention.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/sequence.h"
#include "muster/core/ops/attention.h"
#include "muster/core/ops/dense.h"
#include "muster/core/ops/sequence.h"

namespace muster {
namespace {

enum Parameter : std::size_t { kInputWeight, kInputBias, kOutputWeight, kOutputBias };

class SelfAttentionProgram final : public ModuleProgram {
 public:
  SelfAttentionProgram(const AttentionShape& shape, const ModuleBinding& binding, Context& context)
      : context_(context),
        parameters_(binding.parameters),
        gradients_(binding.gradients),
        rows_(shape.batch * shape.steps),
        features_(shape.features),
        intoHeads_(planDense({rows_, features_, 3 * features_}, context)),
        attention_(planAttention(shape, binding.training, context)),
        outOfHeads_(planDense({rows_, features_, features_}, context)),
        real_(zeros(shape.output())),
        projected_(zeros(shape.input())),
        attended_(zeros(shape.output())) {
    if (!binding.training) return;
    gradProjected_ = zeros(shape.input());
    gradAttended_ = zeros(shape.output());
  }
  BackwardReads backwardReads() const override { return {.input = true, .output = false}; }
  bool recordable() const override { return true; }

  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    const Tensor mask = sequenceMaskOf(info);
    if (mask.defined()) maskSteps(x, mask, real_, context_);
    Tensor projected = rowsOf(projected_), output = rowsOf(y);
    intoHeads_->forward(rowsOf(realOf(x, mask)), parameters_[kInputWeight], parameters_[kInputBias],
                        projected);
    attention_->forward(projected_, mask, attended_);
    outOfHeads_->forward(rowsOf(attended_), parameters_[kOutputWeight], parameters_[kOutputBias], output);
    if (mask.defined()) maskSteps(y, mask, y, context_);
  }

  void backward(const Tensor& x, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo& info) override {
    const Tensor mask = sequenceMaskOf(info);
    if (mask.defined()) maskSteps(gradY, mask, gradY, context_);
    Tensor gradAttended = rowsOf(gradAttended_);
    outOfHeads_->backwardWeights(rowsOf(attended_), rowsOf(gradY), gradients_[kOutputWeight],
                                 gradients_[kOutputBias]);
    outOfHeads_->backwardData(rowsOf(gradY), parameters_[kOutputWeight], gradAttended);
    attention_->backward(projected_, mask, gradAttended_, gradProjected_);
    intoHeads_->backwardWeights(rowsOf(realOf(x, mask)), rowsOf(gradProjected_), gradients_[kInputWeight],
                                gradients_[kInputBias]);
    if (!gradX.defined()) return;
    Tensor gradInput = rowsOf(gradX);
    intoHeads_->backwardData(rowsOf(gradProjected_), parameters_[kInputWeight], gradInput);
  }

 private:
  Tensor zeros(const Shape& shape) const { return Tensor::zeros(shape, DType::Float32, context_.device()); }
  /// The last forward pass's input with zeroed padding.
  const Tensor& realOf(const Tensor& x, const Tensor& mask) const { return mask.defined() ? real_ : x; }
  Tensor rowsOf(const Tensor& tensor) const { return tensor.reshape({rows_, tensor.shape()[2]}); }

  Context& context_;
  std::vector<Tensor> parameters_, gradients_;  // [Parameter]
  std::int64_t rows_, features_;                // rows: all steps of all sequences
  std::unique_ptr<DensePlan> intoHeads_;
  std::unique_ptr<AttentionPlan> attention_;
  std::unique_ptr<DensePlan> outOfHeads_;
  Tensor real_;                       // the input, zero for padding; used only with a mask
  Tensor projected_, gradProjected_;  // [N, T, 3 F]; gradients in training only
  Tensor attended_, gradAttended_;    // [N, T, F]
};

AttentionShape shapeOf(const SelfAttention& layer, std::int64_t batch, std::int64_t steps,
                       std::int64_t features) {
  return {.batch = batch, .steps = steps, .features = features, .heads = layer.heads, .causal = layer.causal};
}

}  // namespace

Shape SelfAttention::outputShape(const Shape& input) const {
  requireSequenceInput(kType, input);
  require(input[1] % heads == 0, "selfattention: {} heads do not divide the features of {}", heads,
          input.toString());
  return input;
}

std::vector<ParameterSpec> SelfAttention::parameters(const Shape& input) const {
  const std::int64_t f = input[1];
  return {{.name = "inputWeight", .shape = {3 * f, f}, .init = init, .fanIn = f, .fanOut = f},
          {.name = "inputBias", .shape = {3 * f}, .regularised = false},
          {.name = "outputWeight", .shape = {f, f}, .init = init, .fanIn = f, .fanOut = f},
          {.name = "outputBias", .shape = {f}, .regularised = false}};
}

std::unique_ptr<ModuleProgram> SelfAttention::compile(const ModuleBinding& binding, Context& context) const {
  const Shape& input = binding.input();
  return std::make_unique<SelfAttentionProgram>(shapeOf(*this, input[0], input[1], input[2]), binding,
                                                context);
}

void SelfAttention::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("heads", heads, "divides the number of features", "[1, )");
  f.field("causal", causal, "a step depends on itself and earlier ones only");
  f.field("init", init, detail::kInitField);
}

void SelfAttention::validate() const {
  require(heads >= 1, "selfattention: heads must be at least 1, got {}", heads);
  init.validate();
}

}  // namespace muster
