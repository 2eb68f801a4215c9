#include "muster/core/ops/conv_transpose2d.h"

#include <algorithm>

#include "muster/core/backend/cpu/conv/direct_conv2d.h"
#include "muster/core/backend/cpu/padding.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/ops/batch_norm.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

[[gnu::always_inline]] inline void addToRun(float* y, std::int64_t count, float bias) {
  for (std::int64_t i = 0; i < count; ++i) y[i] += bias;
}

[[gnu::always_inline]] inline void addToRows(float* y, std::int64_t rows, std::int64_t lanes,
                                             const float* bias) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < lanes; ++i) y[r * lanes + i] += bias[i];
}

/// y[n, c, ...] += bias[c] for y in any layout; padding stays zero.
void addBias(const Tensor& bias, Tensor& y, Context& context) {
  const Shape& shape = y.shape();
  const std::int64_t channels = shape[1], pixels = shape[2] * shape[3];
  const float* b = bias.data<float>();
  float* to = y.data<float>();
  const auto forEach = [&](std::int64_t count, auto f) {
    parallelFor(context, count, 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) f(i);
    });
  };
  const auto addToPlanes = [&](std::int64_t planes, std::int64_t elements) {
    forEach(planes,
            [=](std::int64_t p) { dispatch<addToRun>(to + p * elements, elements, b[p % channels]); });
  };
  const auto blocks = [](std::int64_t n) { return (n + kLayoutBlock - 1) / kLayoutBlock; };
  switch (y.layout()) {
    case Layout::RowMajor:
      return addToPlanes(shape[0] * channels, pixels);
    case Layout::SampleBlocks:
      addToPlanes(blocks(shape[0]) * channels, pixels * kLayoutBlock);
      return zeroPadding(y);
    case Layout::ChannelsLast:
      return forEach(shape[0], [=](std::int64_t n) {
        dispatch<addToRows>(to + n * pixels * channels, pixels, channels, b);
      });
    case Layout::ChannelBlocks:
      return forEach(shape[0] * blocks(channels), [=](std::int64_t p) {
        const std::int64_t first = p % blocks(channels) * kLayoutBlock;
        float lanes[kLayoutBlock] = {};
        std::copy_n(b + first, std::min(kLayoutBlock, channels - first), lanes);
        dispatch<addToRows>(to + p * pixels * kLayoutBlock, pixels, kLayoutBlock,
                            static_cast<const float*>(lanes));
      });
  }
}

/// A convolution with forward and backward exchanged.
class TransposedPlan final : public Conv2dPlan {
 public:
  TransposedPlan(const ConvTranspose2dShape& shape, std::unique_ptr<Conv2dPlan> convolution, Context& context)
      : context_(context),
        convolution_(std::move(convolution)),
        channelSums_(muster::planBatchNorm({.input = shape.output()}, convolution_->inputLayout(), context)),
        sums_(Tensor::zeros({2, shape.outChannels}, DType::Float64)) {}

  Layout inputLayout() const override { return convolution_->outputLayout(); }
  Layout outputLayout() const override { return convolution_->inputLayout(); }
  std::string implementation() const override { return convolution_->implementation() + ", transposed"; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    convolution_->backwardData(x, weight, y);
    if (!bias.defined()) return;
    expectBias("bias", bias);
    addBias(bias, y, context_);
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    convolution_->forward(gradY, weight, none_, gradX);
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    convolution_->backwardWeights(gradY, x, gradWeight, none_);
    if (!gradBias.defined()) return;
    expectBias("gradBias", gradBias);
    channelSums_->sums(gradY, sums_);
    std::copy_n(sums_.data<double>(), gradBias.elements(), gradBias.data<float>());
  }

 private:
  void expectBias(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("conv_transpose2d", name, tensor, {Shape{sums_.shape()[1]}});
  }

  Context& context_;
  std::unique_ptr<Conv2dPlan> convolution_;
  std::unique_ptr<BatchNormPlan> channelSums_;
  Tensor sums_;  // [2, C]: sums of gradY and of its squares; the latter are not used
  Tensor none_;
};

/// The convolution's input is our output, whose gradient is always needed, so the convolution does not count
/// as a first layer even with few channels.
Conv2dChoice choiceFor(const Conv2dShape& convolution, const Context& context) {
  if (convolution.inChannels > 3) return Conv2dChoice::Auto;
  return directConv2dSupports(convolution, context) ? Conv2dChoice::Direct : Conv2dChoice::ChannelsLast;
}

}  // namespace

std::unique_ptr<Conv2dPlan> planConvTranspose2d(const ConvTranspose2dShape& shape, Context& context,
                                                Layout offered) {
  const Conv2dShape convolution = shape.convolution();
  return std::make_unique<TransposedPlan>(
      shape, muster::planConv2d(convolution, context, choiceFor(convolution, context), offered), context);
}

}  // namespace muster::cpu
