#include "muster/core/nn/layers/elementwise.h"

#include "muster/core/base/error.h"
#include "muster/core/ops/dropout.h"

namespace muster {
namespace {

class ActivationProgram final : public ModuleProgram {
 public:
  ActivationProgram(Activation activation, Layout layout, Context& context)
      : activation_(activation), layout_(layout), context_(context) {}
  Layout inputLayout() const override { return layout_; }
  Layout outputLayout() const override { return layout_; }
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override {
    activationForward(activation_, x, y, context_);
  }
  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (gradX.defined()) activationBackward(activation_, x, y, gradY, gradX, context_);
  }

 private:
  Activation activation_;
  Layout layout_;
  Context& context_;
};

class DropoutProgram final : public ModuleProgram {
 public:
  DropoutProgram(double rate, const std::string& name, Context& context)
      : rate_(rate), stream_("dropout " + name), context_(context) {}
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    info.training ? apply(x, y, info) : copy(x, y, context_);
  }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo& info) override {
    if (!gradX.defined()) return;
    info.training ? apply(gradY, gradX, info) : copy(gradY, gradX, context_);
  }

 private:
  void apply(const Tensor& from, Tensor& to, const StepInfo& info) {
    const RandomStream random(info.seed, stream_, info.stamp.epoch);
    if (info.position) return dropout(from, to, rate_, random, *info.position, context_);
    dropout(from, to, rate_, random, info.stamp.firstExample, context_);
  }

  double rate_;
  std::string stream_;
  Context& context_;
};

class FlattenProgram final : public ModuleProgram {
 public:
  bool aliasesInput() const override { return true; }
  void forward(const Tensor&, Tensor&, const StepInfo&) override {}
  void backward(const Tensor&, const Tensor&, Tensor&, Tensor&, const StepInfo&) override {}
};

}  // namespace

Shape ActivationLayer::outputShape(const Shape& input) const {
  require(activation != Activation::Softmax || input.rank() >= 1,
          "activation: softmax needs an input [C] or [C, H, W]");
  return input;
}

std::unique_ptr<ModuleProgram> ActivationLayer::compile(const ModuleBinding& binding,
                                                        Context& context) const {
  const auto layout = activation == Activation::Softmax ? Layout::RowMajor : binding.offered();
  return std::make_unique<ActivationProgram>(activation, layout, context);
}

void ActivationLayer::fields(Fields& f) {
  f.field("name", name);
  f.field("activation", activation);
}

std::unique_ptr<ModuleProgram> Dropout::compile(const ModuleBinding& binding, Context& context) const {
  return std::make_unique<DropoutProgram>(rate, binding.name, context);
}

void Dropout::fields(Fields& f) {
  f.field("name", name);
  f.field("rate", rate);
}

void Dropout::validate() const {
  require(rate >= 0 && rate < 1, "dropout: rate must be at least 0 and below 1, got {}", rate);
}

std::unique_ptr<ModuleProgram> Flatten::compile(const ModuleBinding&, Context&) const {
  return std::make_unique<FlattenProgram>();
}

void Flatten::fields(Fields& f) {
  f.field("name", name);
}

}  // namespace muster
