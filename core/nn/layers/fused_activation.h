#pragma once

#include "muster/core/ops/activation.h"

namespace muster {

/// An activation computed after another operation, in place. Its backward pass needs only the output; for
/// GELU in training it keeps the input in memory planned here, where the operation writes it.
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

  /// The tensor that the operation writes, for `forward` with the same y.
  Tensor& before(Tensor& y) { return input_.defined() ? input_ : y; }

  void forward(Tensor& y, Context& context) {
    if (activation_ == Activation::Identity || withPlan_) return;
    activationForward(activation_, before(y), y, context);
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
