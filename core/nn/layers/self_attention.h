#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"

namespace muster {

/// Self-attention with several heads: [T, F] to [T, F]. Each step takes a weighted mean of the values of all
/// steps (with `causal` of itself and earlier ones); its query and their keys give the weights:
///   [Q K V] = x inputWeight^T + inputBias,   y = attention(Q, K, V) outputWeight^T + outputBias,
/// with scaled dot-product attention in each head (core/ops/attention.h). Padding gets no weight and gives
/// zeros. The result does not depend on the order of steps; include positions in x if it matters.
///
/// Parameters: inputWeight [3 F, F] and inputBias [3 F], of queries, keys and values in this order;
/// outputWeight [F, F], outputBias [F].
struct SelfAttention {
  static constexpr std::string_view kType = "selfattention";
  static constexpr PaddingUse kPaddingUse = PaddingUse::ReadsMask;

  std::int64_t heads = 1;  ///< divides F
  bool causal = false;
  Init init = Init::xavier();
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
