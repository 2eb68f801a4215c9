#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"

namespace muster {

/// Fully connected layer: [F] to [units]; with `perStep` [T, F] to [T, units], with the same weights at each
/// step. Without `perStep`, an input of several dimensions (a sequence, too) is flattened. Parameters: weight
/// [units, F], bias [units].
struct Dense {
  static constexpr std::string_view kType = "dense";
  static constexpr PaddingUse kPaddingUse = PaddingUse::PerStep;

  std::int64_t units = 0;
  Activation activation = Activation::Identity;
  Init init = Init::xavier();
  bool bias = true;
  bool perStep = false;  ///< for sequences: at each step
  std::string name = {};

  bool flatInput() const { return !perStep; }
  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

/// The last layer of a network: a dense layer and a loss. [F] to [units]; with `perStep` [T, F] to [T,
/// units], and a loss at each step. Labels are then [N, T] or [N, T, units], and the score is the mean over
/// all unmasked steps, so a long sequence counts more than a short one.
///
/// The number of outputs is called `classes` in a classification, `units` otherwise; give one of the two.
/// NegativeLogLikelihood requires softmax and BinaryCrossEntropy sigmoid, which are computed as part of the
/// loss; the other losses allow any activation. Other pairs are refused, and so is a softmax over one output,
/// which is always 1. A loss of your own has an `OutputOf`.
struct Output {
  static constexpr std::string_view kType = "output";

  std::int64_t classes = 0;
  std::int64_t units = 0;
  Loss loss = Loss::NegativeLogLikelihood;
  double delta = 1;           ///< of the loss Huber
  double labelSmoothing = 0;  ///< of NegativeLogLikelihood, from 0 to below 1; see LossRule
  /// By default that of the loss: softmax, sigmoid, or for the other losses identity.
  std::optional<Activation> activation = {};
  Init init = Init::xavier();
  bool bias = true;
  bool perStep = false;  ///< for sequences: at each step
  /// Examples: a batch's loss is the sum over the steps of its sequences, divided by the number of examples,
  /// whatever the mask, as in Deeplearning4j.
  LossMean lossMean = LossMean::Rows;
  double lossWeight = 1;  ///< factor of the loss, finite and at least 0
  std::string name = {};

  bool flatInput() const { return !perStep; }
  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  LossHead lossHead() const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
