#pragma once

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "muster/core/base/fields.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// The losses.
enum class Loss {
  NegativeLogLikelihood,  ///< of the labels' classes, by softmax(logits): softmax cross-entropy
  MeanSquaredError,       ///< mean over a row's features of (prediction - label)^2
  BinaryCrossEntropy,     ///< mean over a row's features, of sigmoid(logit) against labels in [0, 1]
};

template <>
struct EnumNames<Loss> {
  static constexpr std::array<std::pair<Loss, std::string_view>, 3> kNames{{
      {Loss::NegativeLogLikelihood, "nll"},
      {Loss::MeanSquaredError, "mse"},
      {Loss::BinaryCrossEntropy, "bce"},
  }};
};

/// The result of a batch's loss.
struct LossValue {
  double sum = 0;     ///< of the rows' losses times their weights
  double weight = 0;  ///< sum of the weights: the loss normaliser. The score is sum / weight, 0 for weight 0.
};

/// The loss of `predictions` float32 [N, F], or [N, T, F] with a prediction at each time step, against
/// `labels`. If `gradient` is defined, it receives d(score)/d(prediction), of the same shape. Each row of F
/// has its own loss; for sequences read [N, T] for [N] below.
///
/// @param predictions  logits for NegativeLogLikelihood and BinaryCrossEntropy (softmax and sigmoid are
///                     part of the loss), activated outputs for MeanSquaredError.
/// @param labels  int64 [N] class indices (NegativeLogLikelihood only) or float32 like the predictions.
/// @param mask    float32 [N], the weights of the examples or time steps, finite and at least 0; undefined:
///                all 1.
/// @param normaliser  the gradient's divisor; 0: this batch's own weight, for sequences the number of
///         unmasked steps.
/// @throws InvalidArgument naming the row for an invalid class index or weight (for sequences the example and
///         the step; on a GPU not the row of a weight), and for shapes that do not match.
/// Sums run over the rows in order, in float64. `gradient` may be the same memory as `predictions`.
LossValue loss(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context);

/// Number of values that `lossInto` writes.
inline constexpr std::size_t kLossNumbers = 4;

/// As `loss`, but the result stays on the predictions' device, for `lossValue` to read after it has been
/// copied: on a GPU this does not wait.
/// @param normaliser  float64 [1] on the predictions' device, read when the work is done; undefined, or 0:
///         the batch's own weight.
/// @param value  float64 [kLossNumbers] on the predictions' device: sum, weight (NaN if one in the mask is
///         negative or not finite), the first row with an invalid class or -1, that class.
/// @throws InvalidArgument for shapes that do not match; for an invalid class or weight on the CPU only.
void lossInto(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context);

/// Reads the numbers of `lossInto` for predictions of this shape. @throws InvalidArgument as `loss` for an
/// invalid class or weight; the gradient has NaN in a row with such a class.
LossValue lossValue(std::span<const double> numbers, const Shape& predictions);

namespace cpu {
LossValue loss(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context);
void lossInto(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context);
}  // namespace cpu
namespace cuda {
LossValue loss(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context);
void lossInto(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context);
}  // namespace cuda

namespace detail {
/// "row 3" for rows [N], "example 2, step 5" for [N, T].
std::string placeOfRow(std::int64_t row, const Shape& rows);
}  // namespace detail

}  // namespace muster
