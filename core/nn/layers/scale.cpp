#include "muster/core/nn/layers/scale.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/ops/elementwise.h"

namespace muster {
namespace {

class ScaleProgram final : public ModuleProgram {
 public:
  ScaleProgram(double factor, Layout layout, Context& context)
      : factor_(factor), layout_(layout), context_(context) {}
  Layout inputLayout() const override { return layout_; }
  Layout outputLayout() const override { return layout_; }
  BackwardReads backwardReads() const override { return {.input = false, .output = false}; }
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override { scale(factor_, x, y, context_); }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (gradX.defined()) scale(factor_, gradY, gradX, context_);
  }

 private:
  double factor_;
  Layout layout_;
  Context& context_;
};

}  // namespace

std::unique_ptr<ModuleProgram> Scale::compile(const ModuleBinding& binding, Context& context) const {
  return std::make_unique<ScaleProgram>(factor, binding.offered(), context);
}

void Scale::fields(Fields& f) {
  f.field("name", name);
  f.field("factor", factor);
}

void Scale::validate() const {
  require(std::isfinite(factor), "scale: the factor must be finite, got {}", factor);
}

}  // namespace muster
