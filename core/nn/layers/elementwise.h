#pragma once

#include <memory>
#include <string>

#include "muster/core/nn/module.h"

namespace muster {

/// An activation function as a layer of its own; any shape. Softmax is over the first dimension (the
/// channels), but over the features of each step of a sequence [T, F].
struct ActivationLayer {
  static constexpr std::string_view kType = "activation";

  Activation activation = Activation::ReLU;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const {}
};

/// Inverted dropout: while training, zeroes each element with probability `rate` and divides the others by
/// 1 - rate. What is dropped depends on the seed, the layer's name, the epoch and the example's position in
/// the epoch, never on the worker.
struct Dropout {
  static constexpr std::string_view kType = "dropout";

  double rate = 0.5;
  std::string name = {};

  Shape outputShape(const Shape& input) const { return input; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

/// Any shape to [elements], row-major. Costs nothing. Chains insert it themselves before a dense layer.
struct Flatten {
  static constexpr std::string_view kType = "flatten";

  std::string name = {};

  Shape outputShape(const Shape& input) const { return {input.elements()}; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const {}
};

}  // namespace muster
