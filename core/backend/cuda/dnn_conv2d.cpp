#include "muster/core/backend/cuda/dnn_conv2d.h"

#include <algorithm>

#include "muster/core/backend/cuda/channel_shape.h"
#include "muster/core/backend/cuda/dnn_algorithms.h"
#include "muster/core/backend/cuda/dnn_descriptors.h"
#include "muster/core/backend/cuda/dnn_operands.h"
#include "muster/core/backend/cuda/dnn_workspace.h"
#include "muster/core/backend/cuda/kernels/channel_sums.h"
#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/detail/vendor_call.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

// This file uses cuDNN's names: x, w, y and their gradients dx, dw, dy; a filter is a weight.

namespace muster::cuda {
namespace {

/// An algorithm's largest workspace. If it exceeds the context's workspace, the plan allocates its own.
constexpr std::size_t kMostWorkspaceBytes = std::size_t{1} << 30;

class DnnConv2d final : public Conv2dPlan {
 public:
  DnnConv2d(const Conv2dShape& s, Layout layout, MathMode mode, Context& context)
      : shape_(s),
        layout_(layout),
        context_(context),
        mode_(mode),
        operands_(s, layout, mode, context),
        workspace_(state()) {
    const muster::detail::VendorCall inside;
    const Trial trial(s, operands_.bf16() ? 2 : sizeof(float), state());
    chooseForward(trial);
    chooseBackwardData(trial);
    chooseBackwardFilter(trial);
    MUSTER_CUDA_CHECK(cudaStreamSynchronize(state().stream()));
  }

  Layout inputLayout() const override { return layout_; }
  Layout outputLayout() const override { return layout_; }
  std::string implementation() const override {
    return fmt::format("cuDNN, {} {}, algorithms {}", nameOf(layout_), nameOf(mode_), passes_);
  }

  /// True only without copies and own workspace, because both gradients would use the same ones.
  bool gradientsApart() const override { return !operands_.copies() && !workspace_.own(); }

  bool fuse(Activation activation) override {
    relu_ = activation == Activation::ReLU;
    return relu_;
  }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    expect("x", x, shape_.input(), layout_);
    expect("weight", weight, shape_.weight(), Layout::RowMajor);
    expect("y", y, shape_.output(), layout_);
    if (bias.defined()) expect("bias", bias, {shape_.outChannels}, Layout::RowMajor);
    const void* const from = operands_.fromX(x);
    const void* const filter = operands_.fromWeight(weight);
    const muster::detail::VendorCall inside;
    MUSTER_CUDA_CHECK(callForward(forward_, from, filter, operands_.toY(y)));
    finish(bias, y);
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    expect("gradY", gradY, shape_.output(), layout_);
    expect("weight", weight, shape_.weight(), Layout::RowMajor);
    expect("gradX", gradX, shape_.input(), layout_);
    const void* const from = operands_.fromY(gradY);
    const void* const filter = operands_.fromWeight(weight);
    const muster::detail::VendorCall inside;
    MUSTER_CUDA_CHECK(callBackwardData(data_, filter, from, operands_.toX(gradX)));
    operands_.finishX(gradX);
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    expect("x", x, shape_.input(), layout_);
    expect("gradY", gradY, shape_.output(), layout_);
    expect("gradWeight", gradWeight, shape_.weight(), Layout::RowMajor);
    const void* const from = operands_.fromX(x);
    const void* const grad = operands_.fromY(gradY);
    const muster::detail::VendorCall inside;
    MUSTER_CUDA_CHECK(callBackwardFilter(filter_, from, grad, operands_.toWeight(gradWeight)));
    operands_.finishWeight(gradWeight);
    if (gradBias.defined()) sumBias(gradY, gradBias);
  }

 private:
  State& state() const { return stateOf(context_); }
  cudnnHandle_t handle() const { return state().dnnHandle(); }

  void expect(const char* name, const Tensor& tensor, const Shape& shape, Layout layout) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape, layout, DType::Float32, context_.device()});
  }

  cudnnStatus_t callForward(cudnnConvolutionFwdAlgo_t algorithm, const void* x, const void* w, void* y) {
    constexpr float one = 1, zero = 0;
    return dnn().cudnnConvolutionForward(handle(), &one, operands_.x(), x, operands_.w(), w,
                                         forwardConvolution_.get(), algorithm, workspace_.data(),
                                         workspace_.bytes(), &zero, operands_.y(), y);
  }

  cudnnStatus_t callBackwardData(cudnnConvolutionBwdDataAlgo_t algorithm, const void* w, const void* dy,
                                 void* dx) {
    constexpr float one = 1, zero = 0;
    return dnn().cudnnConvolutionBackwardData(handle(), &one, operands_.w(), w, operands_.y(), dy,
                                              dataConvolution_.get(), algorithm, workspace_.data(),
                                              workspace_.bytes(), &zero, operands_.x(), dx);
  }

  cudnnStatus_t callBackwardFilter(cudnnConvolutionBwdFilterAlgo_t algorithm, const void* x, const void* dy,
                                   void* dw) {
    constexpr float one = 1, zero = 0;
    return dnn().cudnnConvolutionBackwardFilter(handle(), &one, operands_.x(), x, operands_.y(), dy,
                                                filterConvolution_.get(), algorithm, workspace_.data(),
                                                workspace_.bytes(), &zero, operands_.w(), dw);
  }

  /// Memory for trial calls when planning.
  struct Trial {
    Trial(const Conv2dShape& s, std::size_t size, const State& state)
        : x(static_cast<std::size_t>(s.input().elements()) * size, state.device()),
          w(static_cast<std::size_t>(s.weight().elements()) * size, state.device()),
          y(static_cast<std::size_t>(s.output().elements()) * size, state.device()) {
      for (const Buffer* buffer : {&x, &w, &y})
        MUSTER_CUDA_CHECK(cudaMemsetAsync(buffer->data(), 0, buffer->bytes(), state.stream()));
    }
    Buffer x, w, y;
  };

  /// The first of `found` that is allowed, fits the context's workspace or else `kMostWorkspaceBytes`, and
  /// runs: an offered algorithm may still fail. Its workspace is queried again after its math type is set.
  template <typename Perf, typename BytesOf, typename Run>
  auto firstUsable(std::vector<Perf> found, cudnnConvolutionDescriptor_t convolution, const char* pass,
                   BytesOf bytesOf, Run run) {
    for (const std::size_t most : {kWorkspaceBytes, kMostWorkspaceBytes})
      for (Perf& perf : found) {
        if (!allowed(perf, mode_)) continue;
        const auto mathType = mode_ == MathMode::Float32 ? CUDNN_FMA_MATH : perf.mathType;
        MUSTER_CUDA_CHECK(dnn().cudnnSetConvolutionMathType(convolution, mathType));
        std::size_t bytes = 0;
        if (bytesOf(perf.algo, &bytes) != CUDNN_STATUS_SUCCESS || bytes > most) continue;
        perf.status = workspace_.tryWith(bytes, [&] { return run(perf.algo); });
        if (perf.status == CUDNN_STATUS_SUCCESS) {
          note(static_cast<int>(perf.algo), mathType, bytes, pass);
          return perf.algo;
        }
        muster::detail::warnOnce(fmt::format(
            "conv2d: cuDNN's algorithm {} for the {}, {} {}, does not run: {}", static_cast<int>(perf.algo),
            pass, nameOf(layout_), nameOf(mode_), dnn().cudnnGetErrorString(perf.status)));
        static_cast<void>(cudaGetLastError());
      }
    throw DeviceFailure(
        fmt::format("conv2d: cuDNN has no deterministic {} for input {} and weight {}, {} {}, within {} "
                    "bytes of workspace ({})",
                    pass, shape_.input().toString(), shape_.weight().toString(), nameOf(layout_),
                    nameOf(mode_), kMostWorkspaceBytes, listOf(found)));
  }

  /// Records a pass's algorithm for `implementation`. Warns if it does not use tensor cores in TF32 mode.
  void note(int algorithm, cudnnMathType_t mathType, std::size_t bytes, const char* pass) {
    passes_ += fmt::format("{}{} ({}, {} KiB)", passes_.empty() ? "" : ", ", algorithm,
                           nameOfMathType(mathType), bytes / 1024);
    if (mode_ == MathMode::TensorFloat32 && mathType == CUDNN_FMA_MATH)
      muster::detail::warnOnce(
          fmt::format("conv2d: cuDNN's algorithm {} for the {}, {}, forms products in fp32, not in tf32",
                      algorithm, pass, nameOf(layout_)));
  }

  void chooseForward(const Trial& trial) {
    forwardConvolution_ = makeConvolution(shape_, mathTypeOf(mode_));
    forward_ = firstUsable(
        ask<cudnnConvolutionFwdAlgoPerf_t>(
            mode_,
            [&](int* most) { return dnn().cudnnGetConvolutionForwardAlgorithmMaxCount(handle(), most); },
            [&](int most, int* given, auto* out) {
              return dnn().cudnnGetConvolutionForwardAlgorithm_v7(handle(), operands_.x(), operands_.w(),
                                                                  forwardConvolution_.get(), operands_.y(),
                                                                  most, given, out);
            }),
        forwardConvolution_.get(), "forward pass",
        [&](auto algorithm, auto* bytes) {
          return dnn().cudnnGetConvolutionForwardWorkspaceSize(handle(), operands_.x(), operands_.w(),
                                                               forwardConvolution_.get(), operands_.y(),
                                                               algorithm, bytes);
        },
        [&](auto algorithm) {
          return callForward(algorithm, trial.x.data(), trial.w.data(), trial.y.data());
        });
  }

  void chooseBackwardData(const Trial& trial) {
    dataConvolution_ = makeConvolution(shape_, mathTypeOf(mode_));
    data_ = firstUsable(
        ask<cudnnConvolutionBwdDataAlgoPerf_t>(
            mode_,
            [&](int* most) { return dnn().cudnnGetConvolutionBackwardDataAlgorithmMaxCount(handle(), most); },
            [&](int most, int* given, auto* out) {
              return dnn().cudnnGetConvolutionBackwardDataAlgorithm_v7(handle(), operands_.w(), operands_.y(),
                                                                       dataConvolution_.get(), operands_.x(),
                                                                       most, given, out);
            }),
        dataConvolution_.get(), "gradient of the input",
        [&](auto algorithm, auto* bytes) {
          return dnn().cudnnGetConvolutionBackwardDataWorkspaceSize(handle(), operands_.w(), operands_.y(),
                                                                    dataConvolution_.get(), operands_.x(),
                                                                    algorithm, bytes);
        },
        [&](auto algorithm) {
          return callBackwardData(algorithm, trial.w.data(), trial.y.data(), trial.x.data());
        });
  }

  void chooseBackwardFilter(const Trial& trial) {
    filterConvolution_ = makeConvolution(shape_, mathTypeOf(mode_));
    filter_ = firstUsable(
        ask<cudnnConvolutionBwdFilterAlgoPerf_t>(
            mode_,
            [&](int* most) {
              return dnn().cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(handle(), most);
            },
            [&](int most, int* given, auto* out) {
              return dnn().cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                  handle(), operands_.x(), operands_.y(), filterConvolution_.get(), operands_.w(), most,
                  given, out);
            }),
        filterConvolution_.get(), "gradient of the weights",
        [&](auto algorithm, auto* bytes) {
          return dnn().cudnnGetConvolutionBackwardFilterWorkspaceSize(handle(), operands_.x(), operands_.y(),
                                                                      filterConvolution_.get(), operands_.w(),
                                                                      algorithm, bytes);
        },
        [&](auto algorithm) {
          return callBackwardFilter(algorithm, trial.x.data(), trial.y.data(), trial.w.data());
        });
  }

  /// Adds bias and ReLU to the convolution's result, which is in y or, with bfloat16, in its copy.
  void finish(const Tensor& bias, Tensor& y) {
    const float* const added = bias.defined() ? bias.data<float>() : nullptr;
    if (!operands_.bf16() && !added && !relu_) return;
    const ChannelShape channels = channelShapeOf(y.shape(), layout_);
    const cudaStream_t stream = state().stream();
    MUSTER_CUDA_CHECK(operands_.bf16() ? launchAddBiasFromBFloat16(operands_.toY(y), added, y.data<float>(),
                                                                   channels, relu_, stream)
                                       : launchAddBias(added, y.data<float>(), channels, relu_, stream));
  }

  void sumBias(const Tensor& gradY, Tensor& gradBias) {
    expect("gradBias", gradBias, {shape_.outChannels}, Layout::RowMajor);
    MUSTER_CUDA_CHECK(launchChannelSums(channelShapeOf(gradY.shape(), layout_), gradY.data<float>(),
                                        gradBias.data<float>(), state().partialSums(), state().stream()));
  }

  Conv2dShape shape_;
  Layout layout_;
  Context& context_;
  MathMode mode_;
  DnnOperands operands_;
  DnnWorkspace workspace_;
  std::string passes_;
  ConvolutionOwner forwardConvolution_, dataConvolution_, filterConvolution_;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdDataAlgo_t data_{};
  cudnnConvolutionBwdFilterAlgo_t filter_{};
  bool relu_ = false;
};

}  // namespace

std::unique_ptr<Conv2dPlan> planDnnConv2d(const Conv2dShape& shape, Layout layout, MathMode mode,
                                          Context& context) {
  return std::make_unique<DnnConv2d>(shape, layout, mode, context);
}

}  // namespace muster::cuda
