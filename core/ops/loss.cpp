#include "muster/core/ops/loss.h"

#include <algorithm>
#include <cmath>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/class_labels.h"
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
  if (labels.dtype() == DType::Int64 && detail::takesClasses(kind, predictions.shape()))
    detail::expectTensor("loss", "labels", labels, {rows, Layout::RowMajor, DType::Int64, device});
  else
    detail::expectLike("loss", "labels", labels, predictions);
  if (mask.defined())
    detail::expectTensor("loss", "mask", mask, {rows, Layout::RowMajor, DType::Float32, device});
  if (gradient.defined()) detail::expectLike("loss", "gradient", gradient, predictions);
}

}  // namespace

LossValue loss(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context) {
  requireUsable(rule.kind, predictions, labels, mask, gradient);
  if (predictions.device().isCpu())
    return cpu::loss(rule, predictions, labels, mask, gradient, normaliser, context);
  if constexpr (kCudaBuilt) return cuda::loss(rule, predictions, labels, mask, gradient, normaliser, context);
  throw DeviceUnavailable("loss: this build has no CUDA");
}

LossValue loss(const OwnLoss& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context) {
  requireUsable(Loss::MeanSquaredError, predictions, labels, mask, gradient);
  require(
      predictions.device().isCpu(),
      "loss: a loss of one's own is computed on the CPU; train on CPU workers, or use one of the library's");
  return cpu::loss(rule, predictions, labels, mask, gradient, normaliser, context);
}

void lossInto(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context) {
  requireUsable(rule.kind, predictions, labels, mask, gradient);
  const Device device = predictions.device();
  if (normaliser.defined())
    detail::expectTensor("loss", "normaliser", normaliser,
                         {.shape = {1}, .dtype = DType::Float64, .device = device});
  detail::expectTensor("loss", "value", value,
                       {.shape = {kLossNumbers}, .dtype = DType::Float64, .device = device});
  if (device.isCpu())
    return cpu::lossInto(rule, predictions, labels, mask, gradient, normaliser, value, context);
  if constexpr (kCudaBuilt)
    return cuda::lossInto(rule, predictions, labels, mask, gradient, normaliser, value, context);
  throw DeviceUnavailable("loss: this build has no CUDA");
}

LossValue lossValue(std::span<const double> numbers, const Shape& predictions) {
  require(numbers.size() == kLossNumbers, "loss: a value has {} numbers, got {}", kLossNumbers,
          numbers.size());
  if (numbers[2] >= 0)  // one logit distinguishes class 0 and 1
    throw InvalidArgument(
        fmt::format("loss: the label of {} is {}, expected 0 to {}",
                    detail::placeOfRow(static_cast<std::int64_t>(numbers[2]), predictions.dropLast()),
                    static_cast<std::int64_t>(numbers[3]), std::max<std::int64_t>(1, predictions[-1] - 1)));
  if (!(numbers[1] >= 0 && std::isfinite(numbers[1])))
    throw InvalidArgument("loss: a value of the mask is negative or not finite");
  return {.sum = numbers[0], .weight = numbers[1]};
}

std::string detail::placeOfRow(std::int64_t row, const Shape& rows) {
  if (rows.rank() == 1) return fmt::format("row {}", row);
  return fmt::format("example {}, step {}", row / rows[1], row % rows[1]);
}

}  // namespace muster
