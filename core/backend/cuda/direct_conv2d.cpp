#include "muster/core/backend/cuda/direct_conv2d.h"

#include <algorithm>
#include <limits>

#include "muster/core/backend/cuda/kernels/direct_conv2d.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

/// Maximum number of separately summed parts of a batch; a larger batch has several samples per part.
constexpr std::int64_t kMostParts = 256;

int partsOf(const DirectCall& call) {
  const auto room = static_cast<std::int64_t>(kScratchBytes / sizeof(float)) / directPartFloats(call);
  return static_cast<int>(std::min({room, kMostParts, std::int64_t{call.samples}}));
}

class DirectConv2d final : public Conv2dPlan {
 public:
  DirectConv2d(const Conv2dShape& shape, Context& context)
      : shape_(shape), context_(context), call_(directCallOf(shape)) {}

  Layout inputLayout() const override { return Layout::RowMajor; }
  Layout outputLayout() const override { return Layout::RowMajor; }
  std::string implementation() const override { return "direct"; }

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
    MUSTER_CUDA_CHECK(launchDirectForward(call_, x.data<float>(), weight.data<float>(),
                                          bias.defined() ? bias.data<float>() : nullptr, relu_,
                                          y.data<float>(), stateOf(context_).stream()));
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    expect("gradY", gradY, shape_.output());
    expect("weight", weight, shape_.weight());
    expect("gradX", gradX, shape_.input());
    MUSTER_CUDA_CHECK(launchDirectData(call_, gradY.data<float>(), weight.data<float>(), gradX.data<float>(),
                                       stateOf(context_).stream()));
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    expect("x", x, shape_.input());
    expect("gradY", gradY, shape_.output());
    expect("gradWeight", gradWeight, shape_.weight());
    if (gradBias.defined()) expect("gradBias", gradBias, {shape_.outChannels});
    const State& state = stateOf(context_);
    MUSTER_CUDA_CHECK(launchDirectWeights(call_, x.data<float>(), gradY.data<float>(), partsOf(call_),
                                          reinterpret_cast<float*>(state.scratch()), gradWeight.data<float>(),
                                          gradBias.defined() ? gradBias.data<float>() : nullptr,
                                          state.stream()));
  }

 private:
  void expect(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("conv2d", name, tensor,
                                 {shape, Layout::RowMajor, DType::Float32, context_.device()});
  }

  Conv2dShape shape_;
  Context& context_;
  DirectCall call_;
  bool relu_ = false;
};

}  // namespace

DirectCall directCallOf(const Conv2dShape& s) {
  const auto number = [](std::int64_t size) { return static_cast<int>(size); };
  const Shape output = s.output();
  DirectCall call{.samples = number(s.batch),
                  .inChannels = number(s.inChannels),
                  .height = number(s.height),
                  .width = number(s.width),
                  .outChannels = number(s.outChannels),
                  .outHeight = number(output[2]),
                  .outWidth = number(output[3]),
                  .kernel = {},
                  .stride = {},
                  .padding = {},
                  .dilation = {}};
  for (std::size_t i = 0; i < 2; ++i) {
    call.kernel[i] = number(s.kernel[i]);
    call.stride[i] = number(s.stride[i]);
    call.padding[i] = number(s.padding[i]);
    call.dilation[i] = number(s.dilation[i]);
  }
  return call;
}

bool directConv2dSupports(const Conv2dShape& shape) {
  constexpr auto kMost = std::numeric_limits<int>::max();
  const std::int64_t taps = shape.inChannels * shape.kernel[0] * shape.kernel[1];
  // The kernels index tensors and their padded planes in 32 bits.
  const std::int64_t padded =
      shape.inChannels * (shape.height + 2 * shape.padding[0]) * (shape.width + 2 * shape.padding[1]);
  if (shape.groups != 1 || taps > kMostDirectTaps || padded > kMostSharedBytes ||
      shape.input().elements() > kMost || shape.output().elements() > kMost)
    return false;
  const DirectCall call = directCallOf(shape);
  return directForwardBytes(call) <= kMostSharedBytes && directWeightsBytes(call) <= kMostSharedBytes &&
         partsOf(call) >= 1;
}

std::unique_ptr<Conv2dPlan> planDirectConv2d(const Conv2dShape& shape, Context& context) {
  return std::make_unique<DirectConv2d>(shape, context);
}

}  // namespace muster::cuda
