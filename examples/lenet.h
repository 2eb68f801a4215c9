#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "muster/core/nn/initializer.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/conv2d.h"
#include "muster/core/ops/dense.h"
#include "muster/core/ops/loss.h"
#include "muster/core/ops/pool2d.h"
#include "muster/core/ops/reorder.h"

// LeNet as in MXNet's chapter, written with operations alone: conv 3x3x20, average pool, conv 5x5x50, average
// pool, dense 128, dense 10.

namespace example {

using Tensors = std::vector<muster::Tensor>;

/// Its parameters, with PyTorch's names and shapes.
enum Parameter : std::size_t { kW1, kB1, kW2, kB2, kW3, kB3, kW4, kB4, kParameters };
inline constexpr std::array<const char*, kParameters> kParameterNames{
    "conv1.weight",  "conv1.bias",  "conv2.weight",  "conv2.bias",
    "dense1.weight", "dense1.bias", "dense2.weight", "dense2.bias"};

/// Xavier's weights and zero biases, on the CPU, [Parameter].
inline Tensors initialParameters(std::uint64_t seed) {
  const muster::Shape shapes[]{{20, 1, 3, 3}, {20}, {50, 20, 5, 5}, {50}, {128, 800}, {128}, {10, 128}, {10}};
  Tensors all;
  for (const muster::Shape& shape : shapes) {
    muster::Tensor values = muster::Tensor::zeros(shape);
    const std::int64_t window = shape.rank() == 4 ? shape[2] * shape[3] : 1;
    if (shape.rank() > 1)
      initialize(values, muster::Init::xavier(), window * shape[1], window * shape[0], seed,
                 kParameterNames[all.size()]);
    all.push_back(values);
  }
  return all;
}

/// Activations and their gradient.
struct Value {
  Value(const muster::Shape& shape, const muster::Context& context, muster::Layout layout = kRows)
      : x(muster::Tensor::empty(shape, muster::DType::Float32, context.device(), layout)),
        grad(muster::Tensor::empty(shape, muster::DType::Float32, context.device(), layout)) {}
  /// The target of `reorder` for a layout: the same memory, where nothing is to do, or new memory.
  Value in(muster::Layout layout, const muster::Context& context) const {
    return x.layout() == layout ? *this : Value(x.shape(), context, layout);
  }
  static constexpr auto kRows = muster::Layout::RowMajor;
  muster::Tensor x, grad;
};

/// LeNet for n images on one device: plans and activations, but no parameters, which each call receives.
/// Not thread-safe.
class LeNet {
 public:
  LeNet(std::int64_t n, muster::Context& c)
      : context_(c),
        conv1_(planConv2d({.batch = n, .height = 28, .width = 28, .outChannels = 20, .kernel = {3, 3}}, c)),
        conv2_(planConv2d({n, 20, 13, 13, 50, {5, 5}}, c)),
        pool1_(planPool2d({muster::PoolKind::Average, n, 20, 26, 26}, conv1_->outputLayout(), c)),
        pool2_(planPool2d({muster::PoolKind::Average, n, 50, 9, 9}, conv2_->outputLayout(), c)),
        dense1_(planDense({n, 800, 128}, c)),
        dense2_(planDense({n, 128, 10}, c)),
        images_({n, 1, 28, 28}, c, conv1_->inputLayout()),
        maps1_({n, 20, 26, 26}, c, conv1_->outputLayout()),
        pooled1_({n, 20, 13, 13}, c, conv1_->outputLayout()),
        input2_(pooled1_.in(conv2_->inputLayout(), c)),
        maps2_({n, 50, 9, 9}, c, conv2_->outputLayout()),
        pooled2_({n, 50, 4, 4}, c, conv2_->outputLayout()),
        rows_(pooled2_.in(Value::kRows, c)),
        flat_(rows_),
        hidden_({n, 128}, c),
        logits_({n, 10}, c) {
    for (muster::Tensor* view : {&flat_.x, &flat_.grad}) *view = view->reshape({n, 800});  // the same memory
  }

  /// @param images  [n, 1, 28, 28].  @return logits [n, 10], good until the next call.
  const muster::Tensor& forward(const muster::Tensor& images, const Tensors& w) {
    loadFeatures(images, images_.x, context_);
    conv1_->forward(images_.x, w[kW1], w[kB1], maps1_.x);
    activationForward(kReLU, maps1_.x, maps1_.x, context_);
    pool1_->forward(maps1_.x, pooled1_.x);
    reorder(pooled1_.x, input2_.x, context_);
    conv2_->forward(input2_.x, w[kW2], w[kB2], maps2_.x);
    activationForward(kReLU, maps2_.x, maps2_.x, context_);
    pool2_->forward(maps2_.x, pooled2_.x);
    reorder(pooled2_.x, rows_.x, context_);
    dense1_->forward(flat_.x, w[kW3], w[kB3], hidden_.x);
    activationForward(kReLU, hidden_.x, hidden_.x, context_);
    dense2_->forward(hidden_.x, w[kW4], w[kB4], logits_.x);
    return logits_.x;
  }

  /// Overwrites the gradients g, [Parameter], with those of the last forward pass: of its summed loss divided
  /// by `examples`. @param labels  int64 [n].  @return the summed loss.
  double backward(const muster::Tensor& labels, std::int64_t examples, const Tensors& w, Tensors& g) {
    const double sum = loss(muster::Loss::NegativeLogLikelihood, logits_.x, labels, {}, logits_.grad,
                            static_cast<double>(examples), context_)
                           .sum;
    dense2_->backwardWeights(hidden_.x, logits_.grad, g[kW4], g[kB4]);
    dense2_->backwardData(logits_.grad, w[kW4], hidden_.grad);
    activationBackward(kReLU, {}, hidden_.x, hidden_.grad, hidden_.grad, context_);
    dense1_->backwardWeights(flat_.x, hidden_.grad, g[kW3], g[kB3]);
    dense1_->backwardData(hidden_.grad, w[kW3], flat_.grad);
    reorder(rows_.grad, pooled2_.grad, context_);
    pool2_->backward(pooled2_.grad, maps2_.grad);
    activationBackward(kReLU, {}, maps2_.x, maps2_.grad, maps2_.grad, context_);
    conv2_->backwardWeights(input2_.x, maps2_.grad, g[kW2], g[kB2]);
    conv2_->backwardData(maps2_.grad, w[kW2], input2_.grad);
    reorder(input2_.grad, pooled1_.grad, context_);
    pool1_->backward(pooled1_.grad, maps1_.grad);
    activationBackward(kReLU, {}, maps1_.x, maps1_.grad, maps1_.grad, context_);
    conv1_->backwardWeights(images_.x, maps1_.grad, g[kW1], g[kB1]);
    return sum;
  }

 private:
  static constexpr auto kReLU = muster::Activation::ReLU;

  muster::Context& context_;
  std::unique_ptr<muster::Conv2dPlan> conv1_, conv2_;
  std::unique_ptr<muster::Pool2dPlan> pool1_, pool2_;
  std::unique_ptr<muster::DensePlan> dense1_, dense2_;
  // input2_ and rows_ are the values before them in the layout that comes next; flat_ is rows_ as [n, 800].
  Value images_, maps1_, pooled1_, input2_, maps2_, pooled2_, rows_, flat_, hidden_, logits_;
};

}  // namespace example
