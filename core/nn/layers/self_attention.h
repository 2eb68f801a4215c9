#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"

namespace muster {

/// Self-attention with several heads: [T, F] to [T, F]. Each step asks all steps (with `causal` itself and
/// those before it) and takes the mean of what they hold, weighted by how well they answer:
///   [Q K V] = x inputWeight^T + inputBias,   y = attention(Q, K, V) outputWeight^T + outputBias,
/// with scaled dot-product attention in each head (core/ops/attention.h). Padding gets no weight and gives
/// zeros. It knows no order of the steps; one that matters must be in x.
///
/// Parameters: inputWeight [3 F, F] and inputBias [3 F], of queries, keys and values in this order;
/// outputWeight [F, F], outputBias [F].
struct SelfAttention {
  static constexpr std::string_view kType = "selfattention";

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
