#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/nn/layers/dense.h"
#include "muster/core/nn/layers/field_descriptions.h"

namespace muster {

/// An option struct that is a loss: a type name, the loss of one row with its gradient (see OwnLoss::ofRow),
/// its options (`fields`, for files) and their check.
template <typename T>
concept LossOptions = requires(const T& loss, T& mutableLoss, std::span<const float> row,
                               std::span<float> gradient, Fields& f) {
  { T::kType } -> std::convertible_to<std::string_view>;
  { loss.ofRow(row, row, gradient) } -> std::convertible_to<double>;
  mutableLoss.fields(f);
  loss.validate();
};

/// The last layer of a network with a loss of your own: `OutputOf<Quantile>{.units = 1, .loss = {.quantile =
/// 0.9}}`. A dense layer as Output, on the CPU. Labels are float32 [N, units], or [N, T, units] with
/// `perStep`. Files name it by the loss's type: `Layer::registerType<OutputOf<Quantile>>()`. They keep the
/// loss's options beside those below, so these need other names.
template <typename T>
struct OutputOf {
  static_assert(LossOptions<T>);
  static constexpr std::string_view kType = T::kType;

  std::int64_t units = 0;
  T loss = {};
  Activation activation = Activation::Identity;  ///< of the predictions, before the loss
  Init init = Init::xavier();
  bool bias = true;
  bool perStep = false;  ///< for sequences: at each step
  std::string name = {};

  bool flatInput() const { return !perStep; }
  Shape outputShape(const Shape& input) const { return dense().outputShape(input); }
  std::vector<ParameterSpec> parameters(const Shape& input) const { return dense().parameters(input); }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const {
    return dense().compile(binding, context);
  }
  LossHead lossHead() const {
    return {.loss = Loss::MeanSquaredError, .activation = activation, .own = std::make_shared<Rule>(loss)};
  }
  void fields(Fields& f) {
    f.field("name", name, detail::kNameField);
    f.field("units", units, "number of outputs", "[1, )");
    loss.fields(f);
    f.field("activation", activation, detail::kActivationField);
    f.field("init", init, detail::kInitField);
    f.field("bias", bias, detail::kBiasField);
    f.field("perStep", perStep, detail::kPerStepField);
  }
  void validate() const {
    dense().validate();
    loss.validate();
  }

 private:
  struct Rule final : OwnLoss {
    explicit Rule(T l) : loss(std::move(l)) {}
    double ofRow(std::span<const float> predictions, std::span<const float> labels,
                 std::span<float> gradient) const override {
      return loss.ofRow(predictions, labels, gradient);
    }
    T loss;
  };
  Dense dense() const {
    return {.units = units, .activation = activation, .init = init, .bias = bias, .perStep = perStep};
  }
};

}  // namespace muster
