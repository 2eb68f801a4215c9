#pragma once

#include <memory>
#include <string>

#include "muster/core/nn/module.h"

namespace muster {

/// Any shape to [elements], row-major. Costs nothing. A MultiLayerNetwork inserts it before a dense layer.
struct Flatten {
  static constexpr std::string_view kType = "flatten";
  static constexpr PaddingUse kPaddingUse = PaddingUse::Mixes;

  std::string name = {};

  Shape outputShape(const Shape& input) const { return {input.elements()}; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const {}
};

/// The same elements, row-major, in another shape. Costs nothing.
struct Reshape {
  static constexpr std::string_view kType = "reshape";
  static constexpr PaddingUse kPaddingUse = PaddingUse::Mixes;

  Shape shape = {};  ///< of one example
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
