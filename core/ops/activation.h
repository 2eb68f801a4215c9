#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "muster/core/base/fields.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// The activation functions, element by element but for Softmax.
enum class Activation { Identity, ReLU, LeakyReLU, Tanh, Sigmoid, Softmax, GELU };

template <>
struct EnumNames<Activation> {
  static constexpr std::array<std::pair<Activation, std::string_view>, 7> kNames{{
      {Activation::Identity, "identity"},
      {Activation::ReLU, "relu"},
      {Activation::LeakyReLU, "leakyrelu"},
      {Activation::Tanh, "tanh"},
      {Activation::Sigmoid, "sigmoid"},
      {Activation::Softmax, "softmax"},
      {Activation::GELU, "gelu"},
  }};
};

/// Slope of LeakyReLU below zero.
inline constexpr float kLeakySlope = 0.01f;

/// y = f(x), element by element; x and y may be the same memory, except for GELU if its backward pass
/// follows. Softmax is over dimension 1 of [N, C] or [N, C, H, W] and over the last of a sequence [N, T, F]
/// (RowMajor only), with the maximum subtracted first. GELU is the exact form, x * Phi(x).
/// @throws InvalidArgument if shapes or layouts differ.
void activationForward(Activation activation, const Tensor& x, Tensor& y, Context& context);

/// gradX = gradY * f'(x); gradX and gradY may be the same memory. f' is computed from y, for GELU from x; the
/// other functions do not read x, which may be undefined. The derivative of ReLU and LeakyReLU at 0 is that
/// of the negative side.
void activationBackward(Activation activation, const Tensor& x, const Tensor& y, const Tensor& gradY,
                        Tensor& gradX, Context& context);

namespace cpu {
void activationForward(Activation activation, const Tensor& x, Tensor& y, Context& context);
void activationBackward(Activation activation, const Tensor& x, const Tensor& y, const Tensor& gradY,
                        Tensor& gradX, Context& context);
}  // namespace cpu
namespace cuda {
void activationForward(Activation activation, const Tensor& x, Tensor& y, Context& context);
void activationBackward(Activation activation, const Tensor& x, const Tensor& y, const Tensor& gradY,
                        Tensor& gradX, Context& context);
}  // namespace cuda

}  // namespace muster
