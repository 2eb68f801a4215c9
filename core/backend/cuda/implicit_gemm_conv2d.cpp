#include "muster/core/backend/cuda/implicit_gemm_conv2d.h"

#include <algorithm>
#include <limits>

#include "muster/core/backend/cuda/channel_shape.h"
#include "muster/core/backend/cuda/check.h"
#include "muster/core/backend/cuda/direct_conv2d.h"
#include "muster/core/backend/cuda/kernels/channel_sums.h"
#include "muster/core/backend/cuda/kernels/implicit_gemm_conv2d.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

class ImplicitGemmConv2d final : public Conv2dPlan {
 public:
  ImplicitGemmConv2d(const Conv2dShape& shape, Context& context)
      : shape_(shape), context_(context), call_(directCallOf(shape)) {}

  Layout inputLayout() const override { return Layout::RowMajor; }
  Layout outputLayout() const override { return Layout::RowMajor; }
  std::string implementation() const override { return "implicit GEMM"; }

  bool fuse(Activation activation) override {
    relu_ = activation == Activation::ReLU;
    return relu_;
  }

  bool gradientsApart() const override { return true; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    expect("x", x, shape_.input());
    expect("weight", weight, shape_.weight());
    expect("y", y, shape_.output());
    if (bias.defined()) expect("bias", bias, {shape_.outChannels});
    MUSTER_CUDA_CHECK(launchImplicitForward(call_, x.data<float>(), weight.data<float>(),
                                            bias.defined() ? bias.data<float>() : nullptr, relu_,
                                            y.data<float>(), state().stream()));
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    expect("gradY", gradY, shape_.output());
    expect("weight", weight, shape_.weight());
    expect("gradX", gradX, shape_.input());
    MUSTER_CUDA_CHECK(launchImplicitData(call_, gradY.data<float>(), weight.data<float>(),
                                         gradX.data<float>(), state().stream()));
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    expect("x", x, shape_.input());
    expect("gradY", gradY, shape_.output());
    expect("gradWeight", gradWeight, shape_.weight());
    MUSTER_CUDA_CHECK(launchImplicitWeights(call_, x.data<float>(), gradY.data<float>(),
                                            static_cast<float*>(state().workspace()),
                                            gradWeight.data<float>(), state().stream()));
    if (!gradBias.defined()) return;
    expect("gradBias", gradBias, {shape_.outChannels});
    MUSTER_CUDA_CHECK(launchChannelSums(channelShapeOf(gradY.shape(), Layout::RowMajor), gradY.data<float>(),
                                        gradBias.data<float>(), state().partialSums(), state().stream()));
  }

 private:
  State& state() const { return stateOf(context_); }

  void expect(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("conv2d", name, tensor,
                                 {shape, Layout::RowMajor, DType::Float32, context_.device()});
  }

  Conv2dShape shape_;
  Context& context_;
  DirectCall call_;
  bool relu_ = false;
};

std::int64_t mostSharedBytes(Device device) {
  int most = 0;
  MUSTER_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index()));
  return most;
}

}  // namespace

bool implicitGemmConv2dSupports(const Conv2dShape& s, Context& context) {
  constexpr int kFirstWithTensorFloat32 = 80;  // compute capability
  constexpr std::int64_t kMost = std::numeric_limits<int>::max(), kMostInBlock = 1 << 16,
                         kMostPadded = 1 << 20;
  if (s.groups != 1 || context.mathMode() == MathMode::Float32 ||
      stateOf(context).capability() < kFirstWithTensorFloat32 || s.input().elements() > kMost ||
      s.output().elements() > kMost || s.weight().elements() > kMostInBlock)
    return false;
  // The kernels compute these sizes in 32 bits.
  const auto padded = [&](std::size_t axis, std::int64_t size) {
    return size + 2 * s.padding[axis] + (s.kernel[axis] - 1) * s.dilation[axis];
  };
  const std::int64_t height = padded(0, s.height), width = padded(1, s.width);
  const std::int64_t channels = std::max(s.inChannels, s.outChannels);
  if (std::max({height, width, channels}) > kMostInBlock || channels * height * width > kMostPadded)
    return false;
  const DirectCall call = directCallOf(s);
  const std::int64_t most = mostSharedBytes(context.device());
  return implicitGemmSuits(call) && implicitForwardBytes(call) <= most && implicitDataBytes(call) <= most &&
         implicitWeightsBytes(call) <= most &&
         implicitPartFloats(call) * std::int64_t{sizeof(float)} <= std::int64_t{kWorkspaceBytes};
}

std::unique_ptr<Conv2dPlan> planImplicitGemmConv2d(const Conv2dShape& shape, Context& context) {
  return std::make_unique<ImplicitGemmConv2d>(shape, context);
}

}  // namespace muster::cuda
