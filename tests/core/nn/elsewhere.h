#pragma once

#include "muster/core/nn/compile/on_device.h"
#include "muster/core/nn/layer.h"
#include "tests/support/standard.h"

namespace muster::test {

/// A layer that OnDevice runs in the test's context, even on the CPU, for which a network would compile the
/// layer directly. `other` must outlive the network.
template <LayerOptions T>
struct Elsewhere {
  static constexpr std::string_view kType = "elsewhere";

  T layer;
  Context* other;
  std::string name = {};

  bool flatInput() const { return Layer(layer).module().wantsFlatInput(); }
  Shape outputShape(const Shape& input) const { return layer.outputShape(input); }
  std::vector<ParameterSpec> parameters(const Shape& input) const {
    return Layer(layer).module().parameters({&input, 1});
  }
  std::vector<ParameterSpec> statistics(const Shape& input) const {
    return Layer(layer).module().statistics({&input, 1});
  }
  std::unique_ptr<VertexProgram> compile(const ModuleBinding& binding, Context& context) const {
    return detail::compileOnDevice(Layer(layer).module(), binding, context, *other);
  }
  void fields(Fields& f) { layer.fields(f); }
  void validate() const { layer.validate(); }
};

// Clang deduces nothing from an aggregate before 17.
template <LayerOptions T>
Elsewhere(T, Context*) -> Elsewhere<T>;
template <LayerOptions T>
Elsewhere(T, Context*, std::string) -> Elsewhere<T>;

}  // namespace muster::test
