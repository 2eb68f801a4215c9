#pragma once

#include <memory>

#include "muster/core/nn/module_program.h"
#include "muster/core/ops/pool2d.h"

namespace muster {

/// A planned pooling as a layer.
class Pool2dProgram final : public ModuleProgram {
 public:
  Pool2dProgram(const Pool2dShape& shape, Layout offered, Context& context)
      : shape_(shape), plan_(planPool2d(shape, offered, context)) {}
  const Pool2dShape& shape() const { return shape_; }
  Layout inputLayout() const override { return plan_->layout(); }
  Layout outputLayout() const override { return plan_->layout(); }
  BackwardReads backwardReads() const override { return {.input = false, .output = false}; }
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override { plan_->forward(x, y); }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (gradX.defined()) plan_->backward(gradY, gradX);
  }

 private:
  Pool2dShape shape_;
  std::unique_ptr<Pool2dPlan> plan_;
};

}  // namespace muster
