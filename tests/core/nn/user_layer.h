#pragma once

#include "muster/core/nn/layer.h"
#include "tests/support/standard.h"

namespace muster::test {

/// The identity. Tests override what they need.
struct CopyProgram : ModuleProgram {
  explicit CopyProgram(Context& c) : context(c) {}
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override { copy(x, y, context); }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (gradX.defined()) copy(gradY, gradX, context);
  }
  Context& context;
};

/// A user's layer without parameters; derived ones add `kType`.
template <typename Program>
struct UserLayer {
  std::string name = {};
  Shape outputShape(const Shape& input) const { return input; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding&, Context& context) const {
    return std::make_unique<Program>(context);
  }
  void fields(Fields& f) { f.field("name", name); }
  void validate() const {}
};

}  // namespace muster::test
