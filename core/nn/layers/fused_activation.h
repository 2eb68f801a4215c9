#pragma once

#include "muster/core/ops/activation.h"

namespace muster {

/// An activation after another operation, which writes `operationOutput(y)`; then `forward(y)`. The backward
/// pass needs only y; for GELU in training the operation's output is kept in memory planned here. Otherwise
/// the operation writes y, and the activation is computed in place.
class FusedActivation {
 public:
  FusedActivation(Activation activation, const Shape& shape, Layout layout, bool training, Device device)
      : activation_(activation) {
    if (activation == Activation::GELU && training)
      input_ = Tensor::zeros(shape, DType::Float32, device, layout);
  }

  /// Lets a plan that supports it (`fuse`) compute the activation; `forward` then does nothing.
  template <typename Plan>
  void offerTo(Plan& plan) {
    if constexpr (requires { plan.fuse(activation_); })
      withPlan_ = activation_ != Activation::Identity && !input_.defined() && plan.fuse(activation_);
  }

  /// Whether `forward` leaves y as the plan wrote it.
  bool isWithPlan() const { return activation_ == Activation::Identity || withPlan_; }

  /// Whether `backward` reads the result of `forward`.
  bool readsOutput() const { return activation_ != Activation::Identity && activation_ != Activation::GELU; }

  Tensor& operationOutput(Tensor& y) { return input_.defined() ? input_ : y; }

  void forward(Tensor& y, Context& context) {
    if (activation_ == Activation::Identity || withPlan_) return;
    activationForward(activation_, operationOutput(y), y, context);
  }

  /// Turns d loss / d output into d loss / d input, in place.
  void backward(const Tensor& y, Tensor& grad, Context& context) const {
    if (activation_ != Activation::Identity) activationBackward(activation_, input_, y, grad, grad, context);
  }

 private:
  Activation activation_;
  bool withPlan_ = false;
  Tensor input_;  // before the activation; GELU in training only
};

}  // namespace muster
