#include "muster/core/nn/layers/dense.h"

#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
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
  f.field("name", name, detail::kNameField);
  f.field("units", units, "number of outputs", "[1, )");
  f.field("activation", activation, detail::kActivationField);
  f.field("init", init, detail::kInitField);
  f.field("bias", bias, detail::kBiasField);
  f.field("perStep", perStep, detail::kPerStepField);
}

void Dense::validate() const {
  require(units >= 1, "dense: units must be at least 1, got {}", units);
  require(activation != Activation::Softmax || units > 1, "dense: a softmax over one unit is always 1");
  init.validate();
}

namespace {

std::int64_t outputsOf(const Output& output) {
  return output.units > 0 ? output.units : output.classes;
}

Activation usualActivation(Loss loss) {
  if (loss == Loss::NegativeLogLikelihood) return Activation::Softmax;
  return loss == Loss::BinaryCrossEntropy ? Activation::Sigmoid : Activation::Identity;
}

}  // namespace

Shape Output::outputShape(const Shape& input) const {
  return denseOutput(kType, input, outputsOf(*this), perStep);
}

std::vector<ParameterSpec> Output::parameters(const Shape& input) const {
  const std::int64_t outputs = outputsOf(*this);
  return linearParameters({outputs, input[-1]}, outputs, input[-1], outputs, init, bias);
}

LossHead Output::lossHead() const {
  return {.loss = loss,
          .activation = activation.value_or(usualActivation(loss)),
          .mean = lossMean,
          .weight = lossWeight,
          .delta = delta,
          .labelSmoothing = labelSmoothing};
}

std::unique_ptr<ModuleProgram> Output::compile(const ModuleBinding& binding, Context& context) const {
  const auto own = takesLogits(loss) ? Activation::Identity : lossHead().activation;
  return compileDense(outputsOf(*this), own, binding, context);
}

/// Files have the one of `classes` and `units` that is given, and the activation in use.
void Output::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  const bool ofClasses = classes != 0, ofUnits = units != 0;  // before a reader changes them
  if (ofClasses || !ofUnits) f.field("classes", classes, "number of classes; give this or units", "[0, )");
  if (ofUnits || !ofClasses)
    f.field("units", units, "number of outputs that are not classes; give this or classes", "[0, )");
  f.field(
      "loss", loss,
      "nll: the negative log-likelihood of the class; bce: of each label; mse, mae and huber: for numbers");
  f.field("delta", delta, "of the loss huber: from this error on it is linear", "(0, )");
  f.field("labelSmoothing", labelSmoothing,
          "of the loss nll: share of a label that is spread over all classes, from 0 to below 1", "[0, 1)");
  Activation used = lossHead().activation;
  f.field("activation", used,
          "that of the loss if left out: softmax for nll, sigmoid for bce, else identity");
  activation = used;
  f.field("init", init, detail::kInitField);
  f.field("bias", bias, detail::kBiasField);
  f.field("perStep", perStep, detail::kPerStepField);
  f.field("lossMean", lossMean,
          "examples: losses of the steps of sequences are added up for each example, as in Deeplearning4j");
  f.field("lossWeight", lossWeight, "factor of the loss, at least 0", "[0, )");
}

void Output::validate() const {
  const Activation used = lossHead().activation;
  require(classes == 0 || units == 0,
          "output: classes ({}) and units ({}) are two words for one number; give one", classes, units);
  require(
      classes >= 0 && units >= 0 && outputsOf(*this) >= 1,
      "output: its number of outputs must be at least 1, got {}; it is called classes in a classification, "
      "otherwise units",
      classes != 0 ? classes : units);
  require(loss != Loss::NegativeLogLikelihood || used == Activation::Softmax,
          "output: the loss nll goes with activation softmax, got {}", nameOf(used));
  require(loss != Loss::BinaryCrossEntropy || used == Activation::Sigmoid,
          "output: the loss bce goes with activation sigmoid, got {}", nameOf(used));
  require(used != Activation::Softmax || outputsOf(*this) > 1,
          "output: a softmax over one output is always 1; for two classes give classes = 2, or units = 1 "
          "with the "
          "loss bce; for a number give units = 1 with the loss mse");
  require(std::isfinite(delta) && delta > 0, "output: delta must be finite and above 0, got {}", delta);
  require(labelSmoothing >= 0 && labelSmoothing < 1, "output: labelSmoothing must be in [0, 1), got {}",
          labelSmoothing);
  require(labelSmoothing == 0 || loss == Loss::NegativeLogLikelihood,
          "output: labelSmoothing goes with the loss nll, got {}", nameOf(loss));
  require(std::isfinite(lossWeight) && lossWeight >= 0,
          "output: lossWeight must be finite and not negative, got {}", lossWeight);
  init.validate();
}

}  // namespace muster
