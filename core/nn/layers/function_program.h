#pragma once

#include <memory>
#include <utility>

#include "muster/core/nn/module_program.h"

namespace muster {

/// A program of two functions, forward(x, y) and backward(gradY, gradX), for a recordable operation in any
/// layout whose gradient needs neither input nor output.
template <typename Forward, typename Backward>
class FunctionProgram final : public ModuleProgram {
 public:
  FunctionProgram(Layout layout, Forward forward, Backward backward)
      : layout_(layout), forward_(std::move(forward)), backward_(std::move(backward)) {}
  Layout inputLayout() const override { return layout_; }
  Layout outputLayout() const override { return layout_; }
  BackwardReads backwardReads() const override { return {.input = false, .output = false}; }
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override { forward_(x, y); }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (gradX.defined()) backward_(gradY, gradX);
  }

 private:
  Layout layout_;
  Forward forward_;
  Backward backward_;
};

template <typename Forward, typename Backward>
std::unique_ptr<ModuleProgram> functionProgram(Layout layout, Forward forward, Backward backward) {
  return std::make_unique<FunctionProgram<Forward, Backward>>(layout, std::move(forward),
                                                              std::move(backward));
}

}  // namespace muster
