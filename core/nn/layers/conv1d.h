#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"

namespace muster {

/// Convolution along a sequence: [T, F] to [T', outChannels], T' = (T + 2 padding - dilation (kernel - 1) -
/// 1) / stride + 1, rounded down, with `padding` steps of zeros before and after the sequence. If `causal`,
/// dilation (kernel - 1) steps of zeros are before it instead, so that a step only depends on itself and
/// earlier ones, and T' = (T - 1) / stride + 1. Parameters: weight [outChannels, F / groups, kernel], bias
/// [outChannels]. Any activation except softmax.
///
/// Ignores masks: padded steps count with the values that they hold.
struct Conv1d {
  static constexpr std::string_view kType = "conv1d";

  std::int64_t outChannels = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool causal = false;
  Activation activation = Activation::Identity;
  Init init = Init::xavier();
  bool bias = true;
  std::string name = {};

  PaddingUse paddingUse() const;
  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
