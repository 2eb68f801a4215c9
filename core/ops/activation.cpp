#include "muster/core/ops/activation.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

/// @param given  the tensor that the others must match.
void requireUsable(Activation activation, const Tensor& given) {
  if (!given.defined() || given.dtype() != DType::Float32)
    throw InvalidArgument(
        fmt::format("activation: {} expects a float32 tensor, got {}", nameOf(activation), given.toString()));
  const int rank = given.shape().rank();
  const bool softmaxable = rank >= 2 && rank <= 4 && given.layout() == Layout::RowMajor;
  if (activation == Activation::Softmax && !softmaxable)
    throw InvalidArgument(fmt::format(
        "activation: softmax expects [N, C], [N, T, F] or [N, C, H, W] in row-major order, got {}",
        given.toString()));
}

}  // namespace

void activationForward(Activation activation, const Tensor& x, Tensor& y, Context& context) {
  requireUsable(activation, x);
  detail::expectLike("activation", "y", y, x);
  if (x.device().isCpu()) return cpu::activationForward(activation, x, y, context);
  if constexpr (kCudaBuilt) return cuda::activationForward(activation, x, y, context);
  throw DeviceUnavailable("activation: this build has no CUDA");
}

void activationBackward(Activation activation, const Tensor& x, const Tensor& y, const Tensor& gradY,
                        Tensor& gradX, Context& context) {
  requireUsable(activation, gradY);
  detail::expectLike("activation", "gradX", gradX, gradY);
  if (activation == Activation::GELU)
    detail::expectLike("activation", "x", x, gradY);
  else if (activation != Activation::Identity)
    detail::expectLike("activation", "y", y, gradY);
  if (gradY.device().isCpu()) return cpu::activationBackward(activation, x, y, gradY, gradX, context);
  if constexpr (kCudaBuilt) return cuda::activationBackward(activation, x, y, gradY, gradX, context);
  throw DeviceUnavailable("activation: this build has no CUDA");
}

}  // namespace muster
