#include "muster/core/nn/layers/recurrent.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/sequence.h"
#include "muster/core/ops/detail/extents.h"
#include "muster/core/ops/recurrent.h"

namespace muster {
namespace {

class RecurrentProgram final : public ModuleProgram {
 public:
  RecurrentProgram(const RecurrentShape& shape, const ModuleBinding& binding, Context& context)
      : plan_(planRecurrent(shape, binding.training, context)), weights_(weightsOf(binding.parameters)) {
    if (binding.training) gradients_ = weightsOf(binding.gradients);
  }
  /// The plan keeps a copy of the input and its own states.
  BackwardReads backwardReads() const override { return {.input = false, .output = false}; }
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    plan_->forward(x, weights_, sequenceMaskOf(info), y);
  }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo& info) override {
    plan_->backward(weights_, sequenceMaskOf(info), gradY, gradients_, gradX);
  }

 private:
  static RecurrentWeights weightsOf(const std::vector<Tensor>& tensors) {
    return {tensors[0], tensors[1], tensors[2], tensors.size() > 3 ? tensors[3] : Tensor()};
  }

  std::unique_ptr<RecurrentPlan> plan_;
  RecurrentWeights weights_, gradients_;
};

/// Shared by LSTM and GRU.
template <typename T>
Shape outputOf(const T& layer, const Shape& input) {
  requireSequenceInput(T::kType, input);
  return layer.returnSequences ? Shape{input[0], layer.units} : Shape{layer.units};
}

template <typename T>
std::vector<ParameterSpec> weightSpecs(const T& layer, RecurrentCell cell, const Shape& input) {
  const std::int64_t rows = gatesOf(cell) * layer.units;
  // The fan-out is that of one gate.
  return {{.name = "weight",
           .shape = {rows, input[1]},
           .init = layer.init,
           .fanIn = input[1],
           .fanOut = layer.units},
          {.name = "recurrentWeight",
           .shape = {rows, layer.units},
           .init = layer.recurrentInit,
           .fanIn = layer.units,
           .fanOut = layer.units},
          {.name = "bias", .shape = {rows}, .regularised = false}};
}

template <typename T>
std::unique_ptr<ModuleProgram> compileCell(const T& layer, RecurrentCell cell, const ModuleBinding& binding,
                                           Context& context) {
  const Shape& input = binding.input();
  return std::make_unique<RecurrentProgram>(RecurrentShape{.cell = cell,
                                                           .batch = input[0],
                                                           .steps = input[1],
                                                           .features = input[2],
                                                           .units = layer.units,
                                                           .sequences = layer.returnSequences},
                                            binding, context);
}

template <typename T>
void checkRecurrent(const T& layer) {
  require(layer.units >= 1, "{}: units must be at least 1, got {}", T::kType, layer.units);
  detail::requireExtents(T::kType, {layer.units});
  layer.init.validate();
  layer.recurrentInit.validate();
}

}  // namespace

Shape LSTM::outputShape(const Shape& input) const {
  return outputOf(*this, input);
}

std::vector<ParameterSpec> LSTM::parameters(const Shape& input) const {
  auto specs = weightSpecs(*this, RecurrentCell::LSTM, input);
  specs[2].parts = {Init::zero(), Init::constant(forgetBias), Init::zero(), Init::zero()};
  return specs;
}

std::unique_ptr<ModuleProgram> LSTM::compile(const ModuleBinding& binding, Context& context) const {
  return compileCell(*this, RecurrentCell::LSTM, binding, context);
}

void LSTM::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("units", units, "size of the state", "[1, )");
  f.field("returnSequences", returnSequences,
          "gives the state after each step; false: only after the last real one");
  f.field("forgetBias", forgetBias, "where the forget gate's bias starts; the others start at 0");
  f.field("init", init, "initialiser of the input's weights");
  f.field("recurrentInit", recurrentInit, "initialiser of the state's weights");
}

void LSTM::validate() const {
  checkRecurrent(*this);
  require(std::isfinite(forgetBias), "lstm: forgetBias must be finite, got {}", forgetBias);
}

Shape GRU::outputShape(const Shape& input) const {
  return outputOf(*this, input);
}

std::vector<ParameterSpec> GRU::parameters(const Shape& input) const {
  auto specs = weightSpecs(*this, RecurrentCell::GRU, input);
  specs.push_back({.name = "recurrentBias", .shape = {units}, .regularised = false});
  return specs;
}

std::unique_ptr<ModuleProgram> GRU::compile(const ModuleBinding& binding, Context& context) const {
  return compileCell(*this, RecurrentCell::GRU, binding, context);
}

void GRU::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("units", units, "size of the state", "[1, )");
  f.field("returnSequences", returnSequences,
          "gives the state after each step; false: only after the last real one");
  f.field("init", init, "initialiser of the input's weights");
  f.field("recurrentInit", recurrentInit, "initialiser of the state's weights");
}

void GRU::validate() const {
  checkRecurrent(*this);
}

}  // namespace muster
