#pragma once

#include <memory>
#include <string>

#include "muster/core/nn/module.h"

namespace muster {

/// Inverted dropout: in training, zeroes each element with probability `rate` and divides the others by 1 -
/// rate. The random numbers depend on the seed, the layer's name, the epoch and the example's position in the
/// epoch, never on the worker.
struct Dropout {
  static constexpr std::string_view kType = "dropout";

  double rate = 0.5;
  std::string name = {};

  Shape outputShape(const Shape& input) const { return input; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
