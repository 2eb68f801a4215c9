#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"

namespace muster {

/// Fully connected layer: [F] to [units], or with `perStep` [T, F] to [T, units], each step of a sequence by
/// itself with the same weights. Without `perStep` an input of more dimensions than one is flattened, a
/// sequence too. Parameters: weight [units, F], bias [units].
struct Dense {
  static constexpr std::string_view kType = "dense";

  std::int64_t units = 0;
  Activation activation = Activation::Identity;
  Init init = Init::xavier();
  bool bias = true;
  bool perStep = false;  ///< for sequences: over each step
  std::string name = {};

  bool flatInput() const { return !perStep; }
  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

/// The end of a network: a dense layer and a loss. [F] to [classes]; with `perStep` [T, F] to [T, classes],
/// and a loss at each step. Labels are then [N, T] or [N, T, classes], and the score is the mean over all
/// steps that no mask leaves out, so that a long sequence counts for more than a short one.
///
/// NegativeLogLikelihood goes with softmax and BinaryCrossEntropy with sigmoid, which are computed together
/// with the loss; MeanSquaredError goes with any activation. Other pairs are refused.
struct Output {
  static constexpr std::string_view kType = "output";

  std::int64_t classes = 0;
  Loss loss = Loss::NegativeLogLikelihood;
  Activation activation = Activation::Softmax;
  Init init = Init::xavier();
  bool bias = true;
  bool perStep = false;  ///< for sequences: over each step
  std::string name = {};

  bool flatInput() const { return !perStep; }
  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  LossHead lossHead() const { return {loss, activation}; }
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
