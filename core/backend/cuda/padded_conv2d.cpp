#include "muster/core/backend/cuda/padded_conv2d.h"

#include <utility>

#include "muster/core/backend/cuda/dnn_conv2d.h"
#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

std::int64_t roundedUp(std::int64_t channels, std::int64_t group) {
  return (channels + group - 1) / group * group;
}

class PaddedConv2d final : public Conv2dPlan {
 public:
  PaddedConv2d(const Conv2dShape& shape, const Conv2dShape& padded, std::unique_ptr<Conv2dPlan> plan,
               Context& context)
      : shape_(shape),
        padded_(padded),
        context_(context),
        plan_(std::move(plan)),
        x_(copyOf(padded.input(), Layout::ChannelsLast, shape.inChannels != padded.inChannels)),
        y_(copyOf(padded.output(), Layout::ChannelsLast, shape.outChannels != padded.outChannels)),
        weight_(copyOf(padded.weight(), Layout::RowMajor, true)),
        gradWeight_(copyOf(padded.weight(), Layout::RowMajor, true)),
        bias_(copyOf({padded.outChannels}, Layout::RowMajor, true)),
        gradBias_(copyOf({padded.outChannels}, Layout::RowMajor, true)) {}

  Layout inputLayout() const override { return Layout::ChannelsLast; }
  Layout outputLayout() const override { return Layout::ChannelsLast; }
  std::string implementation() const override {
    return fmt::format("{}, channels padded to {} and {}", plan_->implementation(), padded_.inChannels,
                       padded_.outChannels);
  }
  bool fuse(Activation activation) override { return plan_->fuse(activation); }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    expect("x", x, shape_.input(), Layout::ChannelsLast);
    expect("y", y, shape_.output(), Layout::ChannelsLast);
    if (bias.defined()) {
      expect("bias", bias, {shape_.outChannels}, Layout::RowMajor);
      resize(bias, {1, shape_.outChannels}, bias_, {1, padded_.outChannels});
    }
    padWeight(weight);
    Tensor& to = y_.defined() ? y_ : y;
    plan_->forward(padded(x, x_), weight_, bias.defined() ? bias_ : bias, to);
    crop(y_, y);
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    expect("gradY", gradY, shape_.output(), Layout::ChannelsLast);
    expect("gradX", gradX, shape_.input(), Layout::ChannelsLast);
    padWeight(weight);
    Tensor& to = x_.defined() ? x_ : gradX;
    plan_->backwardData(padded(gradY, y_), weight_, to);
    crop(x_, gradX);
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    expect("x", x, shape_.input(), Layout::ChannelsLast);
    expect("gradY", gradY, shape_.output(), Layout::ChannelsLast);
    expect("gradWeight", gradWeight, shape_.weight(), Layout::RowMajor);
    Tensor& bias = gradBias.defined() ? gradBias_ : gradBias;
    plan_->backwardWeights(padded(x, x_), padded(gradY, y_), gradWeight_, bias);
    resize(gradWeight_, matrixOf(padded_), gradWeight, matrixOf(shape_));
    if (!gradBias.defined()) return;
    expect("gradBias", gradBias, {shape_.outChannels}, Layout::RowMajor);
    resize(gradBias_, {1, padded_.outChannels}, gradBias, {1, shape_.outChannels});
  }

 private:
  /// Memory for a padded copy; an undefined tensor if no copy is needed.
  Tensor copyOf(const Shape& shape, Layout layout, bool needed) const {
    return needed ? Tensor::zeros(shape, DType::Float32, context_.device(), layout) : Tensor();
  }

  static MatrixSize matrixOf(const Conv2dShape& s) {
    return {s.outChannels, s.inChannels * s.kernel[0] * s.kernel[1]};
  }
  /// A channels-last activation as a matrix with one row per pixel.
  static MatrixSize matrixOf(const Shape& s) { return {s[0] * s[2] * s[3], s[1]}; }

  void resize(const Tensor& x, const MatrixSize& from, Tensor& y, const MatrixSize& to) const {
    MUSTER_CUDA_CHECK(launchResize(x.data<float>(), from, y.data<float>(), to, stateOf(context_).stream()));
  }

  void padWeight(const Tensor& weight) {
    expect("weight", weight, shape_.weight(), Layout::RowMajor);
    resize(weight, matrixOf(shape_), weight_, matrixOf(padded_));
  }

  /// Copies `x` into `place` with added channels of zeros; returns `x` itself if `place` is undefined.
  const Tensor& padded(const Tensor& x, Tensor& place) const {
    if (!place.defined()) return x;
    resize(x, matrixOf(x.shape()), place, matrixOf(place.shape()));
    return place;
  }

  void crop(const Tensor& place, Tensor& to) const {
    if (place.defined()) resize(place, matrixOf(place.shape()), to, matrixOf(to.shape()));
  }

  void expect(const char* name, const Tensor& tensor, const Shape& shape, Layout layout) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape, layout, DType::Float32, context_.device()});
  }

  Conv2dShape shape_, padded_;
  Context& context_;
  std::unique_ptr<Conv2dPlan> plan_;
  Tensor x_, y_, weight_, gradWeight_, bias_, gradBias_;  // padded copies; undefined if not needed
};

}  // namespace

Conv2dShape paddedChannels(const Conv2dShape& shape, MathMode mode) {
  const std::int64_t group = mode == MathMode::BFloat16 ? 8 : mode == MathMode::TensorFloat32 ? 4 : 1;
  Conv2dShape padded = shape;
  padded.inChannels = roundedUp(shape.inChannels, group);
  padded.outChannels = roundedUp(shape.outChannels, group);
  return padded;
}

std::unique_ptr<Conv2dPlan> planPaddedConv2d(const Conv2dShape& shape, Context& context) {
  require(shape.groups == 1, "conv2d: PaddedChannels takes one group, not {}", shape.groups);
  const Conv2dShape padded = paddedChannels(shape, context.mathMode());
  return std::make_unique<PaddedConv2d>(
      shape, padded, planDnnConv2d(padded, Layout::ChannelsLast, context.mathMode(), context), context);
}

}  // namespace muster::cuda
