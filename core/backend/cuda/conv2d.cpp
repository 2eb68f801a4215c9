#include "muster/core/ops/conv2d.h"

#include <limits>
#include <vector>

#include "muster/core/backend/cuda/kernels/elementwise.h"

#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/detail/vendor_call.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/reorder.h"

// cuDNN's words here: x, w, y and their derivatives dx, dw, dy; a filter is a weight.

namespace muster::cuda {
namespace {

int toInt(std::int64_t size) {
  require(size <= std::numeric_limits<int>::max(), "conv2d: cuDNN takes sizes up to 2^31 - 1, got {}", size);
  return static_cast<int>(size);
}

cudnnTensorFormat_t formatOf(Layout layout) {
  return layout == Layout::ChannelsLast ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

TensorOwner makeTensor(const Shape& s, Layout layout, cudnnDataType_t type) {
  auto tensor =
      make<TensorOwner>([](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateTensorDescriptor(made)); });
  MUSTER_CUDA_CHECK(dnn().cudnnSetTensor4dDescriptor(tensor.get(), formatOf(layout), type, toInt(s[0]),
                                                     toInt(s[1]), toInt(s[2]), toInt(s[3])));
  return tensor;
}

FilterOwner makeFilter(const Shape& s, Layout layout, cudnnDataType_t type) {
  auto filter =
      make<FilterOwner>([](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateFilterDescriptor(made)); });
  MUSTER_CUDA_CHECK(dnn().cudnnSetFilter4dDescriptor(filter.get(), type, formatOf(layout), toInt(s[0]),
                                                     toInt(s[1]), toInt(s[2]), toInt(s[3])));
  return filter;
}

/// How a mode's products may be formed; cuDNN's default takes TF32 for float32 where the GPU has it.
cudnnMathType_t mathTypeOf(MathMode mode) {
  switch (mode) {
    case MathMode::Float32:
      return CUDNN_FMA_MATH;
    case MathMode::TensorFloat32:
      return CUDNN_DEFAULT_MATH;
    case MathMode::BFloat16:
      return CUDNN_TENSOR_OP_MATH;
  }
  return CUDNN_FMA_MATH;
}

ConvolutionOwner makeConvolution(const Conv2dShape& s, cudnnMathType_t mathType) {
  auto convolution = make<ConvolutionOwner>(
      [](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateConvolutionDescriptor(made)); });
  MUSTER_CUDA_CHECK(dnn().cudnnSetConvolution2dDescriptor(
      convolution.get(), toInt(s.padding[0]), toInt(s.padding[1]), toInt(s.stride[0]), toInt(s.stride[1]),
      toInt(s.dilation[0]), toInt(s.dilation[1]), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionGroupCount(convolution.get(), toInt(s.groups)));
  MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionMathType(convolution.get(), mathType));
  return convolution;
}

/// The first that is deterministic, fits the workspace and multiplies no less exactly than the mode asks;
/// cuDNN sorts them by the time it expects. Its default math is exact where a GPU has nothing else.
template <typename Perf>
const Perf& firstUsable(const std::vector<Perf>& found, const State& state, const char* pass) {
  for (const Perf& perf : found) {
    const bool exact = state.mathMode() != MathMode::Float32 || perf.mathType == CUDNN_FMA_MATH ||
                       (perf.mathType == CUDNN_DEFAULT_MATH && !state.hasTensorFloat32());
    if (perf.status == CUDNN_STATUS_SUCCESS && perf.determinism == CUDNN_DETERMINISTIC &&
        perf.memory <= kWorkspaceBytes && exact)
      return perf;
  }
  throw DeviceFailure(
      fmt::format("conv2d: cuDNN has no deterministic {} for this shape within {} bytes of workspace", pass,
                  kWorkspaceBytes));
}

template <typename Perf, typename Count, typename Query>
std::vector<Perf> ask(Count count, Query query) {
  int most = 0;
  MUSTER_CUDA_CHECK(count(&most));
  std::vector<Perf> found(static_cast<std::size_t>(most));
  int given = 0;
  MUSTER_CUDA_CHECK(query(most, &given, found.data()));
  found.resize(static_cast<std::size_t>(given));
  return found;
}

/// A tensor as cuDNN is to see it, where that is not how it lies: in another order, or rounded to bfloat16.
class Staging {
 public:
  /// @param ordered  whether it needs a place to be put into another order.
  Staging(std::int64_t elements, bool ordered, bool rounded, Device device)
      : ordered_(ordered ? static_cast<std::size_t>(elements) * sizeof(float) : 0, device),
        rounded_(rounded ? static_cast<std::size_t>(elements) * 2 : 0, device) {}

  float* ordered() const { return reinterpret_cast<float*>(ordered_.data()); }
  void* rounded() const { return rounded_.bytes() > 0 ? rounded_.data() : nullptr; }

 private:
  Buffer ordered_, rounded_;
};

class DnnConv2d final : public Conv2dPlan {
 public:
  DnnConv2d(const Conv2dShape& s, Layout layout, Context& context)
      : shape_(s),
        layout_(layout),
        context_(context),
        mode_(context.mathMode()),
        type_(mode_ == MathMode::BFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT),
        x_(makeTensor(s.input(), layout, type_)),
        y_(makeTensor(s.output(), layout, type_)),
        w_(makeFilter(s.weight(), layout, type_)),
        biasShape_(makeTensor({1, s.outChannels, 1, 1}, Layout::RowMajor, CUDNN_DATA_FLOAT)),
        xPlace_(s.input().elements(), false, bf16(), context.device()),
        yPlace_(s.output().elements(), false, bf16(), context.device()),
        wPlace_(s.weight().elements(), layout == Layout::ChannelsLast, bf16(), context.device()) {
    const muster::detail::VendorCall inside;
    chooseForward();
    chooseBackwardData();
    chooseBackwardFilter();
  }

  Layout inputLayout() const override { return layout_; }
  Layout outputLayout() const override { return layout_; }
  std::string implementation() const override {
    return fmt::format("cuDNN, {} {}, algorithms {}, {}, {}", nameOf(layout_), nameOf(mode_),
                       static_cast<int>(forward_), static_cast<int>(data_), static_cast<int>(filter_));
  }

  bool fuse(Activation activation) override {
    relu_ = activation == Activation::ReLU;
    if (relu_) chooseFused();
    return relu_;
  }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    expect("x", x, shape_.input(), layout_);
    expect("weight", weight, shape_.weight(), Layout::RowMajor);
    expect("y", y, shape_.output(), layout_);
    if (bias.defined()) expect("bias", bias, {shape_.outChannels}, Layout::RowMajor);
    const void* const from = rounded(x.data<float>(), xPlace_, x.elements());
    const void* const filter = filterOf(weight);
    void* const to = bf16() ? yPlace_.rounded() : y.raw();
    const muster::detail::VendorCall inside;
    if (bias.defined() && runFused(from, filter, bias.data<float>(), to)) return;
    constexpr float one = 1, zero = 0;
    MUSTER_CUDA_CHECK(dnn().cudnnConvolutionForward(handle(), &one, x_.get(), from, w_.get(), filter,
                                                    forwardConvolution_.get(), forward_, state().workspace(),
                                                    kWorkspaceBytes, &zero, y_.get(), to));
    if (bf16()) MUSTER_CUDA_CHECK(launchFromBFloat16(to, y.data<float>(), y.elements(), state().stream()));
    finish(bias, y);
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    expect("gradY", gradY, shape_.output(), layout_);
    expect("weight", weight, shape_.weight(), Layout::RowMajor);
    expect("gradX", gradX, shape_.input(), layout_);
    const void* const from = rounded(gradY.data<float>(), yPlace_, gradY.elements());
    const void* const filter = filterOf(weight);
    void* const to = bf16() ? xPlace_.rounded() : gradX.raw();
    const muster::detail::VendorCall inside;
    constexpr float one = 1, zero = 0;
    MUSTER_CUDA_CHECK(dnn().cudnnConvolutionBackwardData(handle(), &one, w_.get(), filter, y_.get(), from,
                                                         dataConvolution_.get(), data_, state().workspace(),
                                                         kWorkspaceBytes, &zero, x_.get(), to));
    if (bf16())
      MUSTER_CUDA_CHECK(launchFromBFloat16(to, gradX.data<float>(), gradX.elements(), state().stream()));
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    expect("x", x, shape_.input(), layout_);
    expect("gradY", gradY, shape_.output(), layout_);
    expect("gradWeight", gradWeight, shape_.weight(), Layout::RowMajor);
    const void* const from = rounded(x.data<float>(), xPlace_, x.elements());
    const void* const grad = rounded(gradY.data<float>(), yPlace_, gradY.elements());
    float* const ordered = lastChannels() ? wPlace_.ordered() : gradWeight.data<float>();
    void* const to = bf16() ? wPlace_.rounded() : static_cast<void*>(ordered);
    const muster::detail::VendorCall inside;
    constexpr float one = 1, zero = 0;
    MUSTER_CUDA_CHECK(dnn().cudnnConvolutionBackwardFilter(
        handle(), &one, x_.get(), from, y_.get(), grad, filterConvolution_.get(), filter_,
        state().workspace(), kWorkspaceBytes, &zero, w_.get(), to));
    const cudaStream_t stream = state().stream();
    if (bf16()) MUSTER_CUDA_CHECK(launchFromBFloat16(to, ordered, gradWeight.elements(), stream));
    if (lastChannels())
      MUSTER_CUDA_CHECK(launchReorder<float>(ordered, gradWeight.data<float>(),
                                             filterOrder(Layout::ChannelsLast, Layout::RowMajor), stream));
    if (gradBias.defined()) sumBias(gradY, gradBias);
  }

 private:
  bool bf16() const { return mode_ == MathMode::BFloat16; }
  bool lastChannels() const { return layout_ == Layout::ChannelsLast; }
  State& state() const { return stateOf(context_); }
  cudnnHandle_t handle() const { return state().dnnHandle(); }

  void expect(const char* name, const Tensor& tensor, const Shape& shape, Layout layout) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape, layout, DType::Float32, context_.device()});
  }

  void chooseForward() {
    forwardConvolution_ = makeConvolution(shape_, mathTypeOf(mode_));
    const auto found = ask<cudnnConvolutionFwdAlgoPerf_t>(
        [&](int* most) { return dnn().cudnnGetConvolutionForwardAlgorithmMaxCount(handle(), most); },
        [&](int most, int* given, auto* out) {
          return dnn().cudnnGetConvolutionForwardAlgorithm_v7(
              handle(), x_.get(), w_.get(), forwardConvolution_.get(), y_.get(), most, given, out);
        });
    const auto& best = firstUsable(found, state(), "forward pass");
    forward_ = best.algo;
    MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionMathType(forwardConvolution_.get(), best.mathType));
  }

  void chooseBackwardData() {
    dataConvolution_ = makeConvolution(shape_, mathTypeOf(mode_));
    const auto found = ask<cudnnConvolutionBwdDataAlgoPerf_t>(
        [&](int* most) { return dnn().cudnnGetConvolutionBackwardDataAlgorithmMaxCount(handle(), most); },
        [&](int most, int* given, auto* out) {
          return dnn().cudnnGetConvolutionBackwardDataAlgorithm_v7(
              handle(), w_.get(), y_.get(), dataConvolution_.get(), x_.get(), most, given, out);
        });
    const auto& best = firstUsable(found, state(), "gradient of the input");
    data_ = best.algo;
    MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionMathType(dataConvolution_.get(), best.mathType));
  }

  void chooseBackwardFilter() {
    filterConvolution_ = makeConvolution(shape_, mathTypeOf(mode_));
    const auto found = ask<cudnnConvolutionBwdFilterAlgoPerf_t>(
        [&](int* most) { return dnn().cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(handle(), most); },
        [&](int most, int* given, auto* out) {
          return dnn().cudnnGetConvolutionBackwardFilterAlgorithm_v7(
              handle(), x_.get(), y_.get(), filterConvolution_.get(), w_.get(), most, given, out);
        });
    const auto& best = firstUsable(found, state(), "gradient of the weights");
    filter_ = best.algo;
    MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionMathType(filterConvolution_.get(), best.mathType));
  }

  /// cuDNN adds bias and takes ReLU behind the product in one call; bfloat16 would round before the bias.
  void chooseFused() {
    if (bf16()) return;
    activation_ = make<ActivationOwner>(
        [](auto* made) { MUSTER_CUDA_CHECK(dnn().cudnnCreateActivationDescriptor(made)); });
    MUSTER_CUDA_CHECK(dnn().cudnnSetActivationDescriptor(activation_.get(), CUDNN_ACTIVATION_RELU,
                                                         CUDNN_PROPAGATE_NAN, 0.0));
    fusedWorks_ = true;
  }

  /// @return false where cuDNN does not do this shape so; nothing was enqueued then, and it is not asked
  /// again.
  bool runFused(const void* x, const void* filter, const float* bias, void* y) {
    if (!fusedWorks_) return false;
    constexpr float one = 1, zero = 0;
    const cudnnStatus_t status = dnn().cudnnConvolutionBiasActivationForward(
        handle(), &one, x_.get(), x, w_.get(), filter, forwardConvolution_.get(), forward_,
        state().workspace(), kWorkspaceBytes, &zero, y_.get(), y, biasShape_.get(), bias, activation_.get(),
        y_.get(), y);
    const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
    fusedWorks_ = category != CUDNN_STATUS_NOT_SUPPORTED && category != CUDNN_STATUS_BAD_PARAM;
    if (fusedWorks_) check(status, "cudnnConvolutionBiasActivationForward");
    return fusedWorks_;
  }

  void finish(const Tensor& bias, Tensor& y) {
    if (!bias.defined() && !relu_) return;
    const std::int64_t pixels = lastChannels() ? 1 : y.shape()[2] * y.shape()[3];
    MUSTER_CUDA_CHECK(launchAddBias(bias.defined() ? bias.data<float>() : nullptr, y.data<float>(),
                                    y.elements(), shape_.outChannels, pixels, relu_, state().stream()));
  }

  void sumBias(const Tensor& gradY, Tensor& gradBias) {
    expect("gradBias", gradBias, {shape_.outChannels}, Layout::RowMajor);
    const std::int64_t samples = shape_.batch, pixels = gradY.shape()[2] * gradY.shape()[3];
    const float* from = gradY.data<float>();
    float* to = gradBias.data<float>();
    MUSTER_CUDA_CHECK(
        lastChannels() ? launchColumnSums(from, to, samples * pixels, shape_.outChannels, state().stream())
                       : launchChannelSums(from, to, samples, shape_.outChannels, pixels, state().stream()));
  }

  const void* rounded(const float* from, const Staging& place, std::int64_t elements) const {
    if (!bf16()) return from;
    MUSTER_CUDA_CHECK(launchToBFloat16(from, place.rounded(), elements, state().stream()));
    return place.rounded();
  }

  ReorderShape filterOrder(Layout from, Layout to) const {
    const Shape s = shape_.weight();
    return {s[0], s[1], s[2] * s[3], static_cast<int>(from), static_cast<int>(to), s.elements()};
  }

  /// The weights in the activations' order and the mode's type.
  const void* filterOf(const Tensor& weight) const {
    const float* ordered = weight.data<float>();
    if (lastChannels()) {
      MUSTER_CUDA_CHECK(launchReorder<float>(weight.data<float>(), wPlace_.ordered(),
                                             filterOrder(Layout::RowMajor, Layout::ChannelsLast),
                                             state().stream()));
      ordered = wPlace_.ordered();
    }
    return rounded(ordered, wPlace_, weight.elements());
  }

  Conv2dShape shape_;
  Layout layout_;
  Context& context_;
  MathMode mode_;
  cudnnDataType_t type_;
  TensorOwner x_, y_;
  FilterOwner w_;
  TensorOwner biasShape_;
  Staging xPlace_, yPlace_, wPlace_;
  ConvolutionOwner forwardConvolution_, dataConvolution_, filterConvolution_;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdDataAlgo_t data_{};
  cudnnConvolutionBwdFilterAlgo_t filter_{};
  ActivationOwner activation_;
  bool relu_ = false, fusedWorks_ = false;
};

/// Tensor cores take channels side by side, in fours for TF32 and in eights for bfloat16; cuDNN would reorder
/// to that inside. Elsewhere its row-major kernels are the faster ones. Not measured yet.
Layout layoutFor(const Conv2dShape& s, MathMode mode) {
  const std::int64_t group = mode == MathMode::BFloat16 ? 8 : 4;
  const bool full = s.inChannels % group == 0 && s.outChannels % group == 0 && s.groups == 1;
  return mode != MathMode::Float32 && full ? Layout::ChannelsLast : Layout::RowMajor;
}

/// Channels-last for its caller where cuDNN does the shape row-major alone.
class RowMajorInside final : public Conv2dPlan {
 public:
  RowMajorInside(const Conv2dShape& s, std::unique_ptr<DnnConv2d> plan, Context& context)
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
  std::unique_ptr<DnnConv2d> plan_;
  Tensor x_, y_;  // row-major
};

/// None where cuDNN has no deterministic algorithm for one of the passes, as may be with groups or dilation.
/// A device that fails altogether fails again in what is planned instead.
std::unique_ptr<Conv2dPlan> channelsLastPlan(const Conv2dShape& shape, Context& context) {
  try {
    return std::make_unique<DnnConv2d>(shape, Layout::ChannelsLast, context);
  } catch (const DeviceFailure&) {
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<Conv2dPlan> planConv2d(const Conv2dShape& shape, Context& context, Conv2dChoice choice,
                                       Layout) {
  const bool any = choice == Conv2dChoice::Auto, last = choice == Conv2dChoice::ChannelsLast;
  require(any || last || choice == Conv2dChoice::RowMajor,
          "conv2d: a GPU's choices are Auto, RowMajor and ChannelsLast");
  if (last || (any && layoutFor(shape, context.mathMode()) == Layout::ChannelsLast))
    if (auto plan = channelsLastPlan(shape, context)) return plan;
  auto rows = std::make_unique<DnnConv2d>(shape, Layout::RowMajor, context);
  if (!last) return rows;
  return std::make_unique<RowMajorInside>(shape, std::move(rows), context);
}

}  // namespace muster::cuda
