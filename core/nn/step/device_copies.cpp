#include "muster/core/nn/step/device_copies.h"

namespace muster::detail {

const Tensor& DeviceCopies::of(const Tensor& input) {
  if (input.device() == context_.device()) return input;
  if (!input_.defined() || input_.shape() != input.shape() || input_.dtype() != input.dtype())
    input_ = Tensor::zeros(input.shape(), input.dtype(), context_.device());
  copy(input, input_, context_);
  return input_;
}

Tensor& DeviceCopies::resultFor(Tensor& out) {
  if (context_.device().isCpu()) return out;
  if (!result_.defined() || result_.shape() != out.shape())
    result_ = Tensor::zeros(out.shape(), DType::Float32, context_.device());
  return result_;
}

void DeviceCopies::fetch(const Tensor& from, Tensor& out) {
  if (from.raw() == out.raw()) return;
  copy(from, out, context_);
  context_.synchronize();
}

}  // namespace muster::detail
