#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/ops/conv2d.h"
#include "muster/core/ops/dense.h"
#include "muster/core/ops/loss.h"
#include "muster/core/ops/pool2d.h"

namespace example {

/// Indices of LeNet's parameters in a list: a weight and a bias for each of its four layers.
enum Parameter : std::size_t { kW1, kB1, kW2, kB2, kW3, kB3, kW4, kB4, kParameters };

inline constexpr std::array<std::string_view, kParameters> kParameterNames{
    "conv1.weight",  "conv1.bias",  "conv2.weight",  "conv2.bias",
    "dense1.weight", "dense1.bias", "dense2.weight", "dense2.bias"};

/// Xavier-initialised weights and zero biases, on the CPU, [Parameter].
std::vector<muster::Tensor> initialParameters(std::uint64_t seed);

/// A convolution with ReLU, then 2x2 average pooling, planned for one shape.
class ConvolutionBlock {
 public:
  ConvolutionBlock(const muster::Conv2dShape& shape, muster::Context& context);

  muster::Layout inputLayout() const { return convolution_->inputLayout(); }
  /// Computes `output` from x.
  void forward(const muster::Tensor& x, const muster::Tensor& weight, const muster::Tensor& bias);
  /// Computes the gradients from `gradOutput`, which the caller has written; that of x only if `gradX` is
  /// defined.
  void backward(const muster::Tensor& x, const muster::Tensor& weight, muster::Tensor& gradWeight,
                muster::Tensor& gradBias, muster::Tensor& gradX);

  muster::Tensor output, gradOutput;

 private:
  muster::Context& context_;
  std::unique_ptr<muster::Conv2dPlan> convolution_;
  std::unique_ptr<muster::Pool2dPlan> pooling_;
  muster::Tensor activated_, gradActivated_;  // between ReLU and pooling
};

/// LeNet as in MXNet's chapter, written with muster's operations alone: conv 3x3x20, average pool, conv
/// 5x5x50, average pool, dense 128, dense 10. It is planned for one batch size on one device and owns the
/// activations and their gradients, but no parameters: each call receives them. Not thread-safe.
class LeNet {
 public:
  static constexpr std::int64_t kClasses = 10;

  LeNet(std::int64_t batch, muster::Context& context);
  LeNet(const LeNet&) = delete;
  LeNet& operator=(const LeNet&) = delete;

  /// @param images  [N, 1, 28, 28].  @return logits [N, 10], good until the next call.
  const muster::Tensor& forward(const muster::Tensor& images, std::span<const muster::Tensor> parameters);

  /// Overwrites the gradients, [Parameter], with those of the loss of the last forward pass.
  /// @param labels  int64 [N].  @param normaliser  divides the summed loss before differentiation.
  /// @return the summed loss.
  double backward(const muster::Tensor& labels, double normaliser, std::span<const muster::Tensor> parameters,
                  std::span<muster::Tensor> gradients);

 private:
  muster::Context& context_;
  ConvolutionBlock block1_, block2_;
  std::unique_ptr<muster::DensePlan> dense1_, dense2_;
  // Activations and their gradients. `maps_` is block 2's output in row-major layout; `flat_` views the same
  // memory as one row per image.
  muster::Tensor images_, input2_, maps_, flat_, hidden_, logits_;
  muster::Tensor gradInput2_, gradMaps_, gradFlat_, gradHidden_, gradLogits_;
};

}  // namespace example
