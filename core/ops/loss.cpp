#include "muster/core/ops/loss.h"

#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

void requireUsable(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
                   const Tensor& gradient) {
  if (!predictions.defined() || predictions.dtype() != DType::Float32 ||
      (predictions.shape().rank() != 2 && predictions.shape().rank() != 3) || predictions.shape()[-1] == 0 ||
      predictions.layout() != Layout::RowMajor)
    throw InvalidArgument(fmt::format("loss: expected float32 predictions [N, F] or [N, T, F], got {}",
                                      predictions.toString()));
  const Shape rows = predictions.shape().dropLast();
  const Device device = predictions.device();
  if (kind == Loss::NegativeLogLikelihood && labels.dtype() == DType::Int64)
    detail::expectTensor("loss", "labels", labels, {rows, Layout::RowMajor, DType::Int64, device});
  else
    detail::expectLike("loss", "labels", labels, predictions);
  if (mask.defined())
    detail::expectTensor("loss", "mask", mask, {rows, Layout::RowMajor, DType::Float32, device});
  if (gradient.defined()) detail::expectLike("loss", "gradient", gradient, predictions);
}

}  // namespace

LossValue loss(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context) {
  requireUsable(kind, predictions, labels, mask, gradient);
  if (predictions.device().isCpu())
    return cpu::loss(kind, predictions, labels, mask, gradient, normaliser, context);
  throw DeviceUnavailable("loss: this build has no CUDA");
}

}  // namespace muster
