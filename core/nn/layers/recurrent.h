#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"

namespace muster {

/// Long short-term memory over a sequence: [T, F] to [T, units], the state after each step, or to [units],
/// the state after the last real step. RecurrentCell (core/ops/recurrent.h) has the equations, with gates in
/// the order i, f, g, o. States are initially zero. Padded steps do not change them and give zeros, as does a
/// sequence of padding only.
///
/// Parameters: weight [4 units, F], recurrentWeight [4 units, units], bias [4 units].
struct LSTM {
  static constexpr std::string_view kType = "lstm";
  static constexpr PaddingUse kPaddingUse = PaddingUse::ReadsMask;

  std::int64_t units = 0;
  bool returnSequences = true;  ///< false: only the state after the last real step
  double forgetBias = 1;  ///< where the forget gate's bias starts; the others start at 0. Source: Jozefowicz
                          ///< et al. 2015
  Init init = Init::xavier();           ///< of the input's weights
  Init recurrentInit = Init::xavier();  ///< of the state's weights
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

/// Gated recurrent unit, otherwise as LSTM; gates in the order r, z, n; r acts after the matrix product.
///
/// Parameters: weight [3 units, F], recurrentWeight [3 units, units], bias [3 units], and recurrentBias
/// [units], which r multiplies.
struct GRU {
  static constexpr std::string_view kType = "gru";
  static constexpr PaddingUse kPaddingUse = PaddingUse::ReadsMask;

  std::int64_t units = 0;
  bool returnSequences = true;          ///< false: only the state after the last real step
  Init init = Init::xavier();           ///< of the input's weights
  Init recurrentInit = Init::xavier();  ///< of the state's weights
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
