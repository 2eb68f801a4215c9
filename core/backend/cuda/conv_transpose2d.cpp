#include "muster/core/ops/conv_transpose2d.h"

#include "muster/core/backend/cuda/channel_shape.h"
#include "muster/core/backend/cuda/dnn_conv2d.h"
#include "muster/core/backend/cuda/kernels/channel_sums.h"
#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

/// A convolution with forward and backward exchanged.
class TransposedPlan final : public Conv2dPlan {
 public:
  TransposedPlan(std::unique_ptr<Conv2dPlan> convolution, std::int64_t channels, Context& context)
      : context_(context), convolution_(std::move(convolution)), channels_(channels) {}

  Layout inputLayout() const override { return convolution_->outputLayout(); }
  Layout outputLayout() const override { return convolution_->inputLayout(); }
  std::string implementation() const override { return convolution_->implementation() + ", transposed"; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    convolution_->backwardData(x, weight, y);
    if (!bias.defined()) return;
    expectBias("bias", bias);
    MUSTER_CUDA_CHECK(launchAddBias(bias.data<float>(), y.data<float>(),
                                    channelShapeOf(y.shape(), outputLayout()), /*relu=*/false, stream()));
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    convolution_->forward(gradY, weight, none_, gradX);
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    convolution_->backwardWeights(gradY, x, gradWeight, none_);
    if (!gradBias.defined()) return;
    expectBias("gradBias", gradBias);
    MUSTER_CUDA_CHECK(launchChannelSums(channelShapeOf(gradY.shape(), outputLayout()), gradY.data<float>(),
                                        gradBias.data<float>(), stateOf(context_).partialSums(), stream()));
  }

 private:
  cudaStream_t stream() const { return stateOf(context_).stream(); }
  void expectBias(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("conv_transpose2d", name, tensor,
                                 {{channels_}, Layout::RowMajor, DType::Float32, context_.device()});
  }

  Context& context_;
  std::unique_ptr<Conv2dPlan> convolution_;
  std::int64_t channels_;  // of the output
  Tensor none_;
};

}  // namespace

std::unique_ptr<Conv2dPlan> planConvTranspose2d(const ConvTranspose2dShape& shape, Context& context, Layout) {
  // Use the library: our direct kernels are for first layers, and their input gradient is slow.
  return std::make_unique<TransposedPlan>(planLibraryConv2d(shape.convolution(), context), shape.outChannels,
                                          context);
}

}  // namespace muster::cuda
