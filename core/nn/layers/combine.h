#pragma once

#include <memory>
#include <span>
#include <string>

#include "muster/core/nn/module.h"
#include "muster/core/ops/elementwise.h"

namespace muster {

/// Combines several inputs of one shape element by element, then applies an activation: for example the sum
/// of a residual block.
struct Combine {
  static constexpr std::string_view kType = "combine";

  Combination combination = Combination::Add;
  Activation activation = Activation::Identity;
  std::string name = {};

  Shape outputShape(std::span<const Shape> inputs) const;
  std::unique_ptr<VertexProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  /// @throws InvalidArgument for softmax, which is not element-wise.
  void validate() const;
};

}  // namespace muster
