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
  MeanAbsoluteError,      ///< mean over a row's features of |prediction - label|
  /// Mean over a row's features of d^2 / 2 up to |d| = delta, and delta (|d| - delta / 2) beyond, for d =
  /// prediction - label. Source: Huber 1964.
  Huber,
};

/// A loss and its numbers; a Loss alone has the usual ones.
struct LossRule {
  LossRule(Loss k, double huberDelta = 1, double smoothing = 0)  // NOLINT(google-explicit-constructor)
      : kind(k), delta(huberDelta), labelSmoothing(smoothing) {}

  Loss kind;
  double delta;  ///< of Huber; finite and above 0
  /// For NegativeLogLikelihood over C classes; from 0 to below 1: a label's share y of a class counts as (1 -
  /// labelSmoothing) y + labelSmoothing / C. Source: Szegedy et al. 2016.
  double labelSmoothing;
};

/// Whether a loss takes logits, whose activation (softmax or sigmoid) is a part of it; else it takes
/// activated outputs.
inline bool takesLogits(Loss loss) {
  return loss == Loss::NegativeLogLikelihood || loss == Loss::BinaryCrossEntropy;
}

template <>
struct EnumNames<Loss> {
  static constexpr std::array<std::pair<Loss, std::string_view>, 5> kNames{{
      {Loss::NegativeLogLikelihood, "nll"},
      {Loss::MeanSquaredError, "mse"},
      {Loss::BinaryCrossEntropy, "bce"},
      {Loss::MeanAbsoluteError, "mae"},
      {Loss::Huber, "huber"},
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
///                     part of the loss), activated outputs for the others.
/// @param labels  float32 like the predictions, or int64 [N] class indices for NegativeLogLikelihood and, of
///         one logit, BinaryCrossEntropy (0 or 1).
/// @param mask    float32 [N], the weights of the examples or time steps, finite and at least 0; undefined:
///                all 1.
/// @param normaliser  the gradient's divisor; 0: this batch's own weight, for sequences the number of
///         unmasked steps.
/// @throws InvalidArgument naming the row for an invalid class index or weight (for sequences the example and
///         the step; on a GPU not the row of a weight), and for shapes that do not match.
/// Sums run over the rows in order, in float64. `gradient` may be the same memory as `predictions`.
LossValue loss(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
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
void lossInto(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context);

/// Reads the numbers of `lossInto` for predictions of this shape. @throws InvalidArgument as `loss` for an
/// invalid class or weight; the gradient has NaN in a row with such a class.
LossValue lossValue(std::span<const double> numbers, const Shape& predictions);

/// A loss of one's own, for a LossHead: computed on the CPU, row by row.
class OwnLoss {
 public:
  virtual ~OwnLoss() = default;
  /// The loss of one row (of one step in sequences). `gradient` receives d loss / d prediction, unless it is
  /// empty. Called by several threads at once. @param labels  as many as predictions.
  virtual double ofRow(std::span<const float> predictions, std::span<const float> labels,
                       std::span<float> gradient) const = 0;
};

/// As above with a loss of one's own. @param labels  float32 like the predictions.
/// @throws InvalidArgument for predictions on a GPU, too.
LossValue loss(const OwnLoss& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context);

namespace cpu {
LossValue loss(const OwnLoss& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context);
LossValue loss(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context);
void lossInto(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context);
}  // namespace cpu
namespace cuda {
LossValue loss(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context& context);
void lossInto(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context);
}  // namespace cuda

namespace detail {
/// "row 3" for rows [N], "example 2, step 5" for [N, T].
std::string placeOfRow(std::int64_t row, const Shape& rows);
}  // namespace detail

}  // namespace muster
