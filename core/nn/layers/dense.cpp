#include "muster/core/nn/layers/dense.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/linear.h"
#include "muster/core/ops/dense.h"

namespace muster {
namespace {

std::unique_ptr<ModuleProgram> compileDense(std::int64_t units, Activation activation,
                                            const ModuleBinding& binding, Context& context) {
  const std::int64_t batch = binding.input[0];
  return std::make_unique<LinearProgram<DensePlan>>(
      planDense({batch, binding.input[1], units}, context),
      FusedActivation(activation, {batch, units}, Layout::RowMajor, binding.training), binding, context);
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
  return linearParameters({units, input[0]}, input[0], units, init, bias);
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
}

void Dense::validate() const {
  require(units >= 1, "dense: units must be at least 1, got {}", units);
  init.validate();
}

Shape Output::outputShape(const Shape& input) const {
  return denseOutput(kType, input, classes);
}

std::vector<ParameterSpec> Output::parameters(const Shape& input) const {
  return linearParameters({classes, input[0]}, input[0], classes, init, bias);
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
