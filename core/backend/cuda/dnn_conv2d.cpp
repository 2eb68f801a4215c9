#include "muster/core/backend/cuda/dnn_conv2d.h"

#include <algorithm>

#include "muster/core/backend/cuda/channel_shape.h"
#include "muster/core/backend/cuda/dnn_algorithms.h"
#include "muster/core/backend/cuda/dnn_descriptors.h"
#include "muster/core/backend/cuda/kernels/channel_sums.h"
#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/kernels/reorder.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/detail/vendor_call.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

// This file uses cuDNN's names: x, w, y and their gradients dx, dw, dy; a filter is a weight.

namespace muster::cuda {
namespace {

/// A copy of a tensor in another order or rounded to bfloat16, if cuDNN needs one.
class Staging {
 public:
  /// @param ordered  whether it needs a float32 copy in another order.
  Staging(std::int64_t elements, bool ordered, bool rounded, Device device)
      : ordered_(ordered ? static_cast<std::size_t>(elements) * sizeof(float) : 0, device),
        rounded_(rounded ? static_cast<std::size_t>(elements) * 2 : 0, device) {}

  float* ordered() const { return reinterpret_cast<float*>(ordered_.data()); }
  void* rounded() const { return rounded_.bytes() > 0 ? rounded_.data() : nullptr; }

 private:
  Buffer ordered_, rounded_;
};

/// An algorithm's largest workspace. If it exceeds the context's workspace, the plan allocates its own.
constexpr std::size_t kMostWorkspaceBytes = std::size_t{1} << 30;

class DnnConv2d final : public Conv2dPlan {
 public:
  DnnConv2d(const Conv2dShape& s, Layout layout, MathMode mode, Context& context)
      : shape_(s),
        layout_(layout),
        context_(context),
        mode_(mode),
        type_(mode_ == MathMode::BFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT),
        x_(makeTensor(s.input(), layout, type_)),
        y_(makeTensor(s.output(), layout, type_)),
        w_(makeFilter(s.weight(), layout, type_)),
        xPlace_(s.input().elements(), false, bf16(), context.device()),
        yPlace_(s.output().elements(), false, bf16(), context.device()),
        wPlace_(s.weight().elements(), layout == Layout::ChannelsLast && !bf16(), bf16(), context.device()) {
    const muster::detail::VendorCall inside;
    const Trial trial(s, bf16() ? 2 : sizeof(float), state());
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
  bool gradientsApart() const override { return !bf16() && !lastChannels() && ownWorkspace_.bytes() == 0; }

  bool fuse(Activation activation) override {
    relu_ = activation == Activation::ReLU;
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
    MUSTER_CUDA_CHECK(callForward(forward_, from, filter, to));
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
    MUSTER_CUDA_CHECK(callBackwardData(data_, filter, from, to));
    if (bf16())
      MUSTER_CUDA_CHECK(launchFromBFloat16(to, gradX.data<float>(), gradX.elements(), state().stream()));
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    expect("x", x, shape_.input(), layout_);
    expect("gradY", gradY, shape_.output(), layout_);
    expect("gradWeight", gradWeight, shape_.weight(), Layout::RowMajor);
    const void* const from = rounded(x.data<float>(), xPlace_, x.elements());
    const void* const grad = rounded(gradY.data<float>(), yPlace_, gradY.elements());
    void* const to = bf16() ? wPlace_.rounded() : lastChannels() ? wPlace_.ordered() : gradWeight.raw();
    const muster::detail::VendorCall inside;
    MUSTER_CUDA_CHECK(callBackwardFilter(filter_, from, grad, to));
    if (to != gradWeight.raw()) MUSTER_CUDA_CHECK(fromFilter(to, gradWeight));
    if (gradBias.defined()) sumBias(gradY, gradBias);
  }

 private:
  bool bf16() const { return mode_ == MathMode::BFloat16; }
  bool lastChannels() const { return layout_ == Layout::ChannelsLast; }
  State& state() const { return stateOf(context_); }
  cudnnHandle_t handle() const { return state().dnnHandle(); }
  void* workspace() const { return ownWorkspace_.bytes() > 0 ? ownWorkspace_.data() : state().workspace(); }

  void expect(const char* name, const Tensor& tensor, const Shape& shape, Layout layout) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape, layout, DType::Float32, context_.device()});
  }

  cudnnStatus_t callForward(cudnnConvolutionFwdAlgo_t algorithm, const void* x, const void* w, void* y) {
    constexpr float one = 1, zero = 0;
    return dnn().cudnnConvolutionForward(handle(), &one, x_.get(), x, w_.get(), w, forwardConvolution_.get(),
                                         algorithm, workspace(), workspaceBytes_, &zero, y_.get(), y);
  }

  cudnnStatus_t callBackwardData(cudnnConvolutionBwdDataAlgo_t algorithm, const void* w, const void* dy,
                                 void* dx) {
    constexpr float one = 1, zero = 0;
    return dnn().cudnnConvolutionBackwardData(handle(), &one, w_.get(), w, y_.get(), dy,
                                              dataConvolution_.get(), algorithm, workspace(), workspaceBytes_,
                                              &zero, x_.get(), dx);
  }

  cudnnStatus_t callBackwardFilter(cudnnConvolutionBwdFilterAlgo_t algorithm, const void* x, const void* dy,
                                   void* dw) {
    constexpr float one = 1, zero = 0;
    return dnn().cudnnConvolutionBackwardFilter(handle(), &one, x_.get(), x, y_.get(), dy,
                                                filterConvolution_.get(), algorithm, workspace(),
                                                workspaceBytes_, &zero, w_.get(), dw);
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

  void setWorkspace(std::size_t bytes) {
    if (bytes == workspaceBytes_) return;
    ownWorkspace_ = Buffer();  // free first: both buffers at once would take too much memory
    workspaceBytes_ = kWorkspaceBytes;
    if (bytes > kWorkspaceBytes) ownWorkspace_ = Buffer(bytes, context_.device());
    workspaceBytes_ = bytes;
  }

  /// Runs a call with at least `bytes` of workspace; restores the workspace if the allocation or call fails.
  template <typename Run>
  cudnnStatus_t tryWith(std::size_t bytes, Run run) {
    const std::size_t before = workspaceBytes_;
    cudnnStatus_t status = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    try {
      setWorkspace(std::max(bytes, before));
      status = run();
    } catch (const OutOfMemory&) {
      static_cast<void>(cudaGetLastError());
    }
    if (status != CUDNN_STATUS_SUCCESS) setWorkspace(before);
    return status;
  }

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
        perf.status = tryWith(bytes, [&] { return run(perf.algo); });
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
              return dnn().cudnnGetConvolutionForwardAlgorithm_v7(
                  handle(), x_.get(), w_.get(), forwardConvolution_.get(), y_.get(), most, given, out);
            }),
        forwardConvolution_.get(), "forward pass",
        [&](auto algorithm, auto* bytes) {
          return dnn().cudnnGetConvolutionForwardWorkspaceSize(
              handle(), x_.get(), w_.get(), forwardConvolution_.get(), y_.get(), algorithm, bytes);
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
              return dnn().cudnnGetConvolutionBackwardDataAlgorithm_v7(
                  handle(), w_.get(), y_.get(), dataConvolution_.get(), x_.get(), most, given, out);
            }),
        dataConvolution_.get(), "gradient of the input",
        [&](auto algorithm, auto* bytes) {
          return dnn().cudnnGetConvolutionBackwardDataWorkspaceSize(
              handle(), w_.get(), y_.get(), dataConvolution_.get(), x_.get(), algorithm, bytes);
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
                  handle(), x_.get(), y_.get(), filterConvolution_.get(), w_.get(), most, given, out);
            }),
        filterConvolution_.get(), "gradient of the weights",
        [&](auto algorithm, auto* bytes) {
          return dnn().cudnnGetConvolutionBackwardFilterWorkspaceSize(
              handle(), x_.get(), y_.get(), filterConvolution_.get(), w_.get(), algorithm, bytes);
        },
        [&](auto algorithm) {
          return callBackwardFilter(algorithm, trial.x.data(), trial.y.data(), trial.w.data());
        });
  }

  /// Adds bias and ReLU to the convolution's result, which is in y or, with bfloat16, in its copy.
  void finish(const Tensor& bias, Tensor& y) {
    const float* const added = bias.defined() ? bias.data<float>() : nullptr;
    if (!bf16() && !added && !relu_) return;
    const ChannelShape channels = channelShapeOf(y.shape(), layout_);
    const cudaStream_t stream = state().stream();
    MUSTER_CUDA_CHECK(
        bf16() ? launchAddBiasFromBFloat16(yPlace_.rounded(), added, y.data<float>(), channels, relu_, stream)
               : launchAddBias(added, y.data<float>(), channels, relu_, stream));
  }

  void sumBias(const Tensor& gradY, Tensor& gradBias) {
    expect("gradBias", gradBias, {shape_.outChannels}, Layout::RowMajor);
    MUSTER_CUDA_CHECK(launchChannelSums(channelShapeOf(gradY.shape(), layout_), gradY.data<float>(),
                                        gradBias.data<float>(), state().partialSums(), state().stream()));
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
    if (!lastChannels()) return rounded(weight.data<float>(), wPlace_, weight.elements());
    const ReorderShape order = filterOrder(Layout::RowMajor, Layout::ChannelsLast);
    void* const to = bf16() ? wPlace_.rounded() : wPlace_.ordered();
    MUSTER_CUDA_CHECK(
        bf16() ? launchReorderToBFloat16(weight.data<float>(), to, order, state().stream())
               : launchReorder<float>(weight.data<float>(), wPlace_.ordered(), order, state().stream()));
    return to;
  }

  /// The reverse of `filterOf`.
  cudaError_t fromFilter(const void* filter, Tensor& gradWeight) const {
    float* const to = gradWeight.data<float>();
    const cudaStream_t stream = state().stream();
    if (!lastChannels()) return launchFromBFloat16(filter, to, gradWeight.elements(), stream);
    const ReorderShape order = filterOrder(Layout::ChannelsLast, Layout::RowMajor);
    return bf16() ? launchReorderFromBFloat16(filter, to, order, stream)
                  : launchReorder<float>(static_cast<const float*>(filter), to, order, stream);
  }

  Conv2dShape shape_;
  Layout layout_;
  Context& context_;
  MathMode mode_;
  cudnnDataType_t type_;
  TensorOwner x_, y_;
  FilterOwner w_;
  Staging xPlace_, yPlace_, wPlace_;
  std::string passes_;
  ConvolutionOwner forwardConvolution_, dataConvolution_, filterConvolution_;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdDataAlgo_t data_{};
  cudnnConvolutionBwdFilterAlgo_t filter_{};
  std::size_t workspaceBytes_ = kWorkspaceBytes;  // size passed to cuDNN's calls
  Buffer ownWorkspace_;                           // used if the context's is too small
  bool relu_ = false;
};

}  // namespace

std::unique_ptr<Conv2dPlan> planDnnConv2d(const Conv2dShape& shape, Layout layout, MathMode mode,
                                          Context& context) {
  return std::make_unique<DnnConv2d>(shape, layout, mode, context);
}

}  // namespace muster::cuda
