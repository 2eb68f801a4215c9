#pragma once

#include <memory>
#include <string>

#include "muster/core/nn/module.h"

namespace muster {

/// An activation function as a layer; any shape. Softmax is over the first dimension (the channels); for a
/// sequence [T, F] over the features of each step.
struct ActivationLayer {
  static constexpr std::string_view kType = "activation";

  Activation activation = Activation::ReLU;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const {}
};

}  // namespace muster
