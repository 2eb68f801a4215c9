#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"

namespace muster {

/// Layer normalisation over the last dimension of [F], or of each step of [T, F]: gamma (x - mean) /
/// sqrt(variance + epsilon) + beta, with the (biased) moments of those F values. Equal in training and
/// evaluation; examples are independent. Parameters: gamma [F] and beta [F], initially 1 and 0, without L1,
/// L2 or weight decay. Source: Ba et al. 2016.
struct LayerNorm {
  static constexpr std::string_view kType = "layernorm";
  static constexpr PaddingUse kPaddingUse = PaddingUse::PerStep;

  double epsilon = 1e-5;  ///< added to the variance
  bool affine = true;     ///< has gamma and beta
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
