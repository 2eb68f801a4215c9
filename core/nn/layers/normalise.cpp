#include "muster/core/nn/layers/normalise.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/ops/batch_norm.h"

namespace muster {
namespace {

/// The features of [F] and [T, F], the channels of [C, H, W].
std::int64_t featuresOf(const Shape& example) {
  return example.rank() == 3 ? example[0] : example[-1];
}

/// A batch normalisation by given statistics: mean `shift`, gamma `scale`, and a standard deviation of 1.
class NormaliseProgram final : public ModuleProgram {
 public:
  NormaliseProgram(const Shape& rows, Layout layout, const ModuleBinding& binding, Context& context)
      : rows_(rows),
        plan_(planBatchNorm({.input = rows, .epsilon = 1}, layout, context)),
        shift_(binding.statistics[0]),
        scale_(binding.statistics[1]),
        noVariance_(Tensor::zeros(shift_.shape(), DType::Float32, context.device())) {}

  Layout inputLayout() const override { return plan_->layout(); }
  Layout outputLayout() const override { return plan_->layout(); }
  BackwardReads backwardReads() const override { return {.input = true, .output = false}; }
  bool gradientInPlace() const override { return plan_->gradientInPlace(); }
  bool recordable() const override { return true; }

  void forward(const Tensor& x, Tensor& y, const StepInfo&) override {
    Tensor to = asRows(y);
    plan_->normaliseBy(asRows(x), shift_, noVariance_, scale_, {}, to);
  }

  void backward(const Tensor& x, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (!gradX.defined()) return;
    Tensor to = asRows(gradX);
    plan_->gradientBy(asRows(x), asRows(gradY), to);
  }

 private:
  /// Sequences as rows, their steps.
  Tensor asRows(const Tensor& values) const {
    return values.shape() == rows_ ? values : values.reshape(rows_);
  }

  Shape rows_;
  std::unique_ptr<BatchNormPlan> plan_;
  Tensor shift_, scale_, noVariance_;
};

}  // namespace

Shape Normalise::outputShape(const Shape& input) const {
  require(input.rank() >= 1 && input.rank() <= 3,
          "normalise: expected an input [F], [T, F] or [C, H, W], got {}", input.toString());
  return input;
}

/// A scale of 0 says that the layer was never fitted. A merge's mean of equal values does not change them.
std::vector<ParameterSpec> Normalise::statistics(const Shape& input) const {
  const Shape features{featuresOf(input)};
  return {{.name = "shift", .shape = features}, {.name = "scale", .shape = features}};
}

std::unique_ptr<ModuleProgram> Normalise::compile(const ModuleBinding& binding, Context& context) const {
  const Shape& input = binding.input();
  if (input.rank() == 4)
    return std::make_unique<NormaliseProgram>(input, binding.offered(), binding, context);
  const std::int64_t features = input[-1];
  const Shape rows{input.elements() / features, features};
  return std::make_unique<NormaliseProgram>(rows, Layout::RowMajor, binding, context);
}

void Normalise::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("method", method, "standardise: mean 0 and standard deviation 1; minmax: from 0 to 1");
}

}  // namespace muster
