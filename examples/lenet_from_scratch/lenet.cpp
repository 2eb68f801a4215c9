#include "examples/lenet_from_scratch/lenet.h"

#include "muster/core/nn/initializer.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/reorder.h"

namespace example {
namespace {

using namespace muster;

constexpr std::int64_t kHidden = 128;

Conv2dShape convolution1(std::int64_t batch) {
  return {.batch = batch, .height = 28, .width = 28, .outChannels = 20, .kernel = {3, 3}};
}
Conv2dShape convolution2(std::int64_t batch) {
  return {.batch = batch, .inChannels = 20, .height = 13, .width = 13, .outChannels = 50, .kernel = {5, 5}};
}

Pool2dShape poolingBehind(const Conv2dShape& convolution) {
  const Shape input = convolution.output();
  return {.kind = PoolKind::Average,
          .batch = input[0],
          .channels = input[1],
          .height = input[2],
          .width = input[3]};
}

constexpr std::int64_t kMaps = 50 * 4 * 4;  // features per image after the second pooling

Tensor memory(const Shape& shape, Layout layout, const Context& context) {
  return Tensor::empty(shape, DType::Float32, context.device(), layout);
}
Tensor memory(const Shape& shape, const Context& context) {
  return memory(shape, Layout::RowMajor, context);
}

/// The target of `reorder` for a layout: the tensor itself if it already has this layout (`reorder` then does
/// nothing), else new memory.
Tensor inLayout(const Tensor& tensor, Layout layout, const Context& context) {
  return tensor.layout() == layout ? tensor : memory(tensor.shape(), layout, context);
}

Tensor initialWeight(const Shape& shape, std::int64_t fanIn, std::int64_t fanOut, std::uint64_t seed,
                     Parameter parameter) {
  Tensor weight = Tensor::empty(shape);
  initialize(weight, Init::xavier(), fanIn, fanOut, seed, kParameterNames[parameter]);
  return weight;
}

Tensor convolutionWeight(const Conv2dShape& shape, std::uint64_t seed, Parameter parameter) {
  const std::int64_t window = shape.kernel[0] * shape.kernel[1];
  return initialWeight(shape.weight(), window * shape.inChannels, window * shape.outChannels, seed,
                       parameter);
}

Tensor denseWeight(std::int64_t in, std::int64_t out, std::uint64_t seed, Parameter parameter) {
  return initialWeight({out, in}, in, out, seed, parameter);
}

}  // namespace

std::vector<Tensor> initialParameters(std::uint64_t seed) {
  return {convolutionWeight(convolution1(1), seed, kW1),    Tensor::zeros({20}),
          convolutionWeight(convolution2(1), seed, kW2),    Tensor::zeros({50}),
          denseWeight(kMaps, kHidden, seed, kW3),           Tensor::zeros({kHidden}),
          denseWeight(kHidden, LeNet::kClasses, seed, kW4), Tensor::zeros({LeNet::kClasses})};
}

ConvolutionBlock::ConvolutionBlock(const Conv2dShape& shape, Context& context)
    : context_(context), convolution_(planConv2d(shape, context)) {
  // The convolution's plan chooses the layout; pooling and ReLU work in any layout.
  const Layout layout = convolution_->outputLayout();
  const Pool2dShape pooling = poolingBehind(shape);
  pooling_ = planPool2d(pooling, layout, context);
  activated_ = memory(shape.output(), layout, context);
  gradActivated_ = memory(shape.output(), layout, context);
  output = memory(pooling.output(), layout, context);
  gradOutput = memory(pooling.output(), layout, context);
}

void ConvolutionBlock::forward(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  convolution_->forward(x, weight, bias, activated_);
  activationForward(Activation::ReLU, activated_, activated_, context_);
  pooling_->forward(activated_, output);
}

void ConvolutionBlock::backward(const Tensor& x, const Tensor& weight, Tensor& gradWeight, Tensor& gradBias,
                                Tensor& gradX) {
  pooling_->backward(gradOutput, gradActivated_);
  activationBackward(Activation::ReLU, {}, activated_, gradActivated_, gradActivated_, context_);
  convolution_->backwardWeights(x, gradActivated_, gradWeight, gradBias);
  if (gradX.defined()) convolution_->backwardData(gradActivated_, weight, gradX);
}

LeNet::LeNet(std::int64_t batch, Context& context)
    : context_(context),
      block1_(convolution1(batch), context),
      block2_(convolution2(batch), context),
      dense1_(planDense({batch, kMaps, kHidden}, context)),
      dense2_(planDense({batch, kHidden, kClasses}, context)) {
  images_ = memory(convolution1(batch).input(), block1_.inputLayout(), context);
  input2_ = inLayout(block1_.output, block2_.inputLayout(), context);
  gradInput2_ = inLayout(block1_.gradOutput, block2_.inputLayout(), context);
  maps_ = inLayout(block2_.output, Layout::RowMajor, context);
  gradMaps_ = inLayout(block2_.gradOutput, Layout::RowMajor, context);
  flat_ = maps_.reshape({batch, kMaps});
  gradFlat_ = gradMaps_.reshape({batch, kMaps});
  hidden_ = memory({batch, kHidden}, context);
  gradHidden_ = memory({batch, kHidden}, context);
  logits_ = memory({batch, kClasses}, context);
  gradLogits_ = memory({batch, kClasses}, context);
}

const Tensor& LeNet::forward(const Tensor& images, std::span<const Tensor> parameters) {
  loadFeatures(images, images_, context_);
  block1_.forward(images_, parameters[kW1], parameters[kB1]);
  reorder(block1_.output, input2_, context_);
  block2_.forward(input2_, parameters[kW2], parameters[kB2]);
  reorder(block2_.output, maps_, context_);
  dense1_->forward(flat_, parameters[kW3], parameters[kB3], hidden_);
  activationForward(Activation::ReLU, hidden_, hidden_, context_);
  dense2_->forward(hidden_, parameters[kW4], parameters[kB4], logits_);
  return logits_;
}

double LeNet::backward(const Tensor& labels, double normaliser, std::span<const Tensor> parameters,
                       std::span<Tensor> gradients) {
  const LossValue value =
      loss(Loss::NegativeLogLikelihood, logits_, labels, {}, gradLogits_, normaliser, context_);
  dense2_->backwardWeights(hidden_, gradLogits_, gradients[kW4], gradients[kB4]);
  dense2_->backwardData(gradLogits_, parameters[kW4], gradHidden_);
  activationBackward(Activation::ReLU, {}, hidden_, gradHidden_, gradHidden_, context_);
  dense1_->backwardWeights(flat_, gradHidden_, gradients[kW3], gradients[kB3]);
  dense1_->backwardData(gradHidden_, parameters[kW3], gradFlat_);
  reorder(gradMaps_, block2_.gradOutput, context_);
  block2_.backward(input2_, parameters[kW2], gradients[kW2], gradients[kB2], gradInput2_);
  reorder(gradInput2_, block1_.gradOutput, context_);
  Tensor nobodyAsks;  // undefined: the gradient of the images is not needed
  block1_.backward(images_, parameters[kW1], gradients[kW1], gradients[kB1], nobodyAsks);
  return value.sum;
}

}  // namespace example
