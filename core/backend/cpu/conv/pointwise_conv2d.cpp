#include "muster/core/backend/cpu/conv/pointwise_conv2d.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "muster/core/backend/cpu/column_sums.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/weight_gradient.h"
#include "muster/core/device/math_mode.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

/// The wrapped plan's own weights' gradient is planned, with its scratch memory, but never runs.
class PointwisePlan final : public Conv2dPlan {
 public:
  PointwisePlan(const Conv2dShape& shape, std::unique_ptr<Conv2dPlan> plan, Context& context)
      : shape_(shape),
        plan_(std::move(plan)),
        context_(context),
        pixels_(shape.batch * shape.height * shape.width),
        gradWeight_(pixels_, shape.outChannels, shape.outChannels, shape.inChannels, context),
        sums_(static_cast<std::size_t>(shape.outChannels)) {
    fillSmallChunkCache();
  }

  Layout inputLayout() const override { return plan_->inputLayout(); }
  Layout outputLayout() const override { return plan_->outputLayout(); }
  std::string implementation() const override {
    return plan_->implementation() + "; weights' gradient sgemm";
  }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    plan_->forward(x, weight, bias, y);
  }
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    plan_->backwardData(gradY, weight, gradX);
  }
  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    const std::int64_t channels = shape_.outChannels;
    expect("x", x, shape_.input(), inputLayout());
    expect("gradY", gradY, shape_.output(), outputLayout());
    expect("gradWeight", gradWeight, shape_.weight(), Layout::RowMajor);
    gradWeight_.run(gradY.data<float>(), x.data<float>(), gradWeight.data<float>());
    if (!gradBias.defined()) return;
    expect("gradBias", gradBias, Shape{channels}, Layout::RowMajor);
    const float* from = gradY.data<float>();
    double* sums = sums_.data();
    parallelFor(context_, channels, 64, [=, this](std::int64_t begin, std::int64_t end) {
      dispatch<sumColumns<double>>(from, sums, pixels_, channels, begin, end);
    });
    std::ranges::copy(sums_, gradBias.data<float>());
  }

 private:
  static void expect(const char* name, const Tensor& tensor, const Shape& shape, Layout layout) {
    muster::detail::expectTensor("conv2d", name, tensor, {shape, layout});
  }

  const Conv2dShape shape_;
  const std::unique_ptr<Conv2dPlan> plan_;
  Context& context_;
  const std::int64_t pixels_;  // of all images
  WeightGradient gradWeight_;
  std::vector<double> sums_;  // [output channel] of gradY
};

}  // namespace

bool pointwiseGradientSupports(const Conv2dShape& shape, const Context& context) {
  const std::array<std::int64_t, 2> ones{1, 1}, none{0, 0};
  return instructionSet() == InstructionSet::Avx2 && context.mathMode() != MathMode::BFloat16 &&
         shape.groups == 1 && shape.kernel == ones && shape.stride == ones && shape.padding == none;
}

std::unique_ptr<Conv2dPlan> withPointwiseGradient(const Conv2dShape& shape, std::unique_ptr<Conv2dPlan> plan,
                                                  Context& context) {
  return std::make_unique<PointwisePlan>(shape, std::move(plan), context);
}

}  // namespace muster::cpu
