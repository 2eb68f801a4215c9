#include "muster/core/ops/conv2d.h"

#include "muster/core/backend/cuda/conv2d_table.h"
#include "muster/core/backend/cuda/direct_conv2d.h"
#include "muster/core/backend/cuda/dnn_conv2d.h"
#include "muster/core/backend/cuda/implicit_gemm_conv2d.h"
#include "muster/core/backend/cuda/kernels/direct_conv2d.h"
#include "muster/core/backend/cuda/padded_conv2d.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/backend/cuda/switches.h"
#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/ops/reorder.h"

namespace muster::cuda {
namespace {

/// Tensor cores need channels-last, with multiples of 4 channels for TF32 and of 8 for bfloat16; with other
/// counts cuDNN reorders inside its row-major kernels. Channels-last would save that, but needs reorders
/// before and after: on an H100 the convnet's second convolution takes 120 us instead of 152 without them.
Layout layoutFor(const Conv2dShape& s, MathMode mode) {
  const std::int64_t group = mode == MathMode::BFloat16 ? 8 : 4;
  const bool full = s.inChannels % group == 0 && s.outChannels % group == 0 && s.groups == 1;
  return mode != MathMode::Float32 && full ? Layout::ChannelsLast : Layout::RowMajor;
}

/// The channels of an image: too few for tensor cores, and cuDNN would reorder them first.
constexpr std::int64_t kMostDirectChannels = 3;

/// A channels-last convolution around a row-major plan, for shapes that cuDNN only supports row-major.
class RowMajorInside final : public Conv2dPlan {
 public:
  RowMajorInside(const Conv2dShape& s, std::unique_ptr<Conv2dPlan> plan, Context& context)
      : context_(context),
        plan_(std::move(plan)),
        x_(Tensor::empty(s.input(), DType::Float32, context.device())),
        y_(Tensor::empty(s.output(), DType::Float32, context.device())) {}

  Layout inputLayout() const override { return Layout::ChannelsLast; }
  Layout outputLayout() const override { return Layout::ChannelsLast; }
  std::string implementation() const override { return plan_->implementation() + " inside channels-last"; }
  bool fuse(Activation activation) override { return plan_->fuse(activation); }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    muster::reorder(x, x_, context_);
    plan_->forward(x_, weight, bias, y_);
    muster::reorder(y_, y, context_);
  }
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    muster::reorder(gradY, y_, context_);
    plan_->backwardData(y_, weight, x_);
    muster::reorder(x_, gradX, context_);
  }
  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    muster::reorder(x, x_, context_);
    muster::reorder(gradY, y_, context_);
    plan_->backwardWeights(x_, y_, gradWeight, gradBias);
  }

 private:
  Context& context_;
  std::unique_ptr<Conv2dPlan> plan_;
  Tensor x_, y_;  // row-major
};

/// Warns and returns null if cuDNN has no deterministic algorithm for a pass, which can happen with groups or
/// dilation. If the cause is a failed device, the caller's alternative plan fails, too.
std::unique_ptr<Conv2dPlan> channelsLastPlan(const Conv2dShape& shape, Context& context) {
  try {
    return planDnnConv2d(shape, Layout::ChannelsLast, context.mathMode(), context);
  } catch (const DeviceFailure& error) {
    muster::detail::warnOnce(fmt::format("{}; it is planned row-major", error.what()));
    return nullptr;
  }
}

/// Like channelsLastPlan, with padded channels.
std::unique_ptr<Conv2dPlan> paddedPlan(const Conv2dShape& shape, Context& context) {
  try {
    return planPaddedConv2d(shape, context);
  } catch (const DeviceFailure& error) {
    muster::detail::warnOnce(fmt::format("{}; its channels are not padded", error.what()));
    return nullptr;
  }
}

/// Plans in the context's math mode, or in a more exact mode if cuDNN has no algorithm for it.
std::unique_ptr<Conv2dPlan> rowMajorPlan(const Conv2dShape& shape, Context& context) {
  const auto planned = [&](MathMode mode) { return planDnnConv2d(shape, Layout::RowMajor, mode, context); };
  MathMode mode = context.mathMode();
  while (mode != MathMode::Float32) {
    try {
      return planned(mode);
    } catch (const DeviceFailure& error) {
      muster::detail::warnOnce(fmt::format("{}; it is planned with more exact products", error.what()));
    }
    mode = mode == MathMode::BFloat16 ? MathMode::TensorFloat32 : MathMode::Float32;
  }
  return planned(MathMode::Float32);
}

}  // namespace

std::unique_ptr<Conv2dPlan> planLibraryConv2d(const Conv2dShape& shape, Context& context) {
  if (layoutFor(shape, context.mathMode()) == Layout::ChannelsLast)
    if (auto plan = channelsLastPlan(shape, context)) return plan;
  return rowMajorPlan(shape, context);
}

namespace {

bool supports(const Conv2dShape& shape, Context& context, Conv2dChoice choice) {
  return choice == Conv2dChoice::Direct         ? directConv2dSupports(shape)
         : choice == Conv2dChoice::ImplicitGemm ? implicitGemmConv2dSupports(shape, context)
                                                : true;
}

/// The switch for the layer if it is set, else the measured choice for this kind of GPU, else Auto.
Conv2dChoice choiceFor(const Conv2dShape& shape, Context& context) {
  const auto layer = muster::detail::LogScope::innermost();
  notePlanned(layer);
  const Conv2dChoice asked = switches().choiceFor(layer);
  if (asked != Conv2dChoice::Auto) return asked;
  const State& state = stateOf(context);
  const Conv2dChoice measured = measuredChoice(kMeasuredConv2d, state.capability(), shape, state.mathMode());
  return supports(shape, context, measured) ? measured : Conv2dChoice::Auto;
}

std::unique_ptr<Conv2dPlan> planAs(const Conv2dShape& shape, Context& context, Conv2dChoice choice) {
  switch (choice) {
    case Conv2dChoice::Auto:
      if (shape.inChannels <= kMostDirectChannels && directConv2dSupports(shape))
        return planDirectConv2d(shape, context);
      return planLibraryConv2d(shape, context);
    case Conv2dChoice::RowMajor:
      return rowMajorPlan(shape, context);
    case Conv2dChoice::ChannelsLast:
      if (auto plan = channelsLastPlan(shape, context)) return plan;
      return std::make_unique<RowMajorInside>(shape, rowMajorPlan(shape, context), context);
    case Conv2dChoice::PaddedChannels:
      if (auto plan = paddedPlan(shape, context)) return plan;
      return planLibraryConv2d(shape, context);
    case Conv2dChoice::Direct:
      require(directConv2dSupports(shape),
              "conv2d: a GPU's direct kernels take one group, at most {} products an output, and images and "
              "weights that fit {} bytes together, not an input {} and weights {}",
              kMostDirectTaps, kMostSharedBytes, shape.input().toString(), shape.weight().toString());
      return planDirectConv2d(shape, context);
    case Conv2dChoice::ImplicitGemm:
      require(
          implicitGemmConv2dSupports(shape, context),
          "conv2d: a GPU's implicit GEMM takes TF32 or bf16, one group, stride 1, padding below the kernel's "
          "reach, at most 64 output channels, and images that fit a block's shared memory with their "
          "gradients and the weights, not an input {} and weights {} in {}",
          shape.input().toString(), shape.weight().toString(), nameOf(context.mathMode()));
      return planImplicitGemmConv2d(shape, context);
    case Conv2dChoice::ChannelBlocks:
    case Conv2dChoice::Winograd:
      break;
  }
  throw InvalidArgument(
      "conv2d: a GPU's choices are Auto, RowMajor, ChannelsLast, PaddedChannels, Direct and ImplicitGemm");
}

}  // namespace

std::unique_ptr<Conv2dPlan> planConv2d(const Conv2dShape& shape, Context& context, Conv2dChoice choice,
                                       Layout) {
  if (choice == Conv2dChoice::Auto) choice = choiceFor(shape, context);
  auto plan = planAs(shape, context, choice);
  log(LogLevel::Debug, "planned: " + plan->implementation());
  return plan;
}

}  // namespace muster::cuda
