#include "muster/core/nn/layers/dense.h"

#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/linear.h"
#include "muster/core/ops/dense.h"

namespace muster {
namespace {

/// A program on rows, run on all steps of all sequences: [N, T, F] is viewed as [N * T, F].
class PerStepProgram final : public ModuleProgram {
 public:
  PerStepProgram(std::unique_ptr<ModuleProgram> rows, std::int64_t steps)
      : rows_(std::move(rows)), steps_(steps) {}
  BackwardReads backwardReads() const override { return rows_->backwardReads(); }
  bool readsGradientLate() const override { return rows_->readsGradientLate(); }
  bool recordable() const override { return rows_->recordable(); }
  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    Tensor output = rowsOf(y);
    rows_->forward(rowsOf(x), output, info);
  }
  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX,
                const StepInfo& info) override {
    Tensor gradOutput = rowsOf(gradY), gradInput = gradX.defined() ? rowsOf(gradX) : Tensor();
    rows_->backward(rowsOf(x), rowsOf(y), gradOutput, gradInput, info);
  }

 private:
  Tensor rowsOf(const Tensor& tensor) const { return tensor.reshape({steps_, tensor.shape()[2]}); }

  std::unique_ptr<ModuleProgram> rows_;
  std::int64_t steps_;  // of the whole batch
};

std::unique_ptr<ModuleProgram> compileDense(std::int64_t units, Activation activation,
                                            const ModuleBinding& binding, Context& context) {
  const bool perStep = binding.input().rank() == 3;
  const std::int64_t rows = perStep ? binding.input()[0] * binding.input()[1] : binding.input()[0];
  auto program = std::make_unique<LinearProgram<DensePlan>>(
      planDense({rows, binding.input()[-1], units}, context),
      FusedActivation(activation, {rows, units}, Layout::RowMajor, binding.training, context.device()),
      binding, context);
  if (!perStep) return program;
  return std::make_unique<PerStepProgram>(std::move(program), rows);
}

Shape denseOutput(std::string_view type, const Shape& input, std::int64_t units, bool perStep) {
  if (perStep) {
    require(input.rank() == 2 && input[0] > 0 && input[1] > 0,
            "{}: with perStep it expects a sequence [T, F] of at least one step, got {}", type,
            input.toString());
    return {input[0], units};
  }
  require(input.rank() == 1, "{}: expected an input [F], got {}", type, input.toString());
  require(input[0] > 0, "{}: expected an input [F] of at least 1 feature, got {}", type, input.toString());
  return {units};
}

}  // namespace

Shape Dense::outputShape(const Shape& input) const {
  return denseOutput(kType, input, units, perStep);
}

std::vector<ParameterSpec> Dense::parameters(const Shape& input) const {
  return linearParameters({units, input[-1]}, units, input[-1], units, init, bias);
}

std::unique_ptr<ModuleProgram> Dense::compile(const ModuleBinding& binding, Context& context) const {
  return compileDense(units, activation, binding, context);
}

void Dense::fields(Fields& f) {
  f.field("name", name);
  f.field("units", units);
  f.field("activation", activation);
  init.field("init", f);
  f.field("bias", bias);
  f.field("perStep", perStep);
}

void Dense::validate() const {
  require(units >= 1, "dense: units must be at least 1, got {}", units);
  init.validate();
}

Shape Output::outputShape(const Shape& input) const {
  return denseOutput(kType, input, classes, perStep);
}

std::vector<ParameterSpec> Output::parameters(const Shape& input) const {
  return linearParameters({classes, input[-1]}, classes, input[-1], classes, init, bias);
}

std::unique_ptr<ModuleProgram> Output::compile(const ModuleBinding& binding, Context& context) const {
  // Softmax and sigmoid are part of their losses, which take logits.
  const auto own = loss == Loss::MeanSquaredError ? activation : Activation::Identity;
  return compileDense(classes, own, binding, context);
}

void Output::fields(Fields& f) {
  f.field("name", name);
  f.field("classes", classes);
  f.field("loss", loss);
  f.field("activation", activation);
  init.field("init", f);
  f.field("bias", bias);
  f.field("perStep", perStep);
  f.field("lossMean", lossMean);
  f.field("lossWeight", lossWeight);
}

void Output::validate() const {
  require(classes >= 1, "output: classes must be at least 1, got {}", classes);
  require(loss != Loss::NegativeLogLikelihood || activation == Activation::Softmax,
          "output: the loss nll goes with activation softmax, got {}", nameOf(activation));
  require(loss != Loss::BinaryCrossEntropy || activation == Activation::Sigmoid,
          "output: the loss bce goes with activation sigmoid, got {}", nameOf(activation));
  require(std::isfinite(lossWeight) && lossWeight >= 0,
          "output: lossWeight must be finite and not negative, got {}", lossWeight);
  init.validate();
}

}  // namespace muster
