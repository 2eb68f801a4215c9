#include "muster/core/ops/loss.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "muster/core/backend/cpu/exp.h"
#include "muster/core/backend/cpu/lanes.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"

namespace muster::cpu {
namespace {

// Each row function returns the loss of one row, and writes factor * d(loss)/d(prediction) if `gradient` is
// not null; `gradient` may be `z` itself.

struct LogSumExp {
  double top, sum;  // of the logits: their maximum, and the sum of exp(z - top)
  double log() const { return top + std::log(sum); }
};

[[gnu::always_inline]] inline LogSumExp logSumExpOf(const float* z, std::int64_t features) {
  constexpr float kLowest = -3.4028235e38f;
  const double top = largestOf(
      features, kLowest, [=](std::int64_t f) __attribute__((always_inline)) { return z[f]; });
  const auto sum = sumOf<double>(
      features, [=](std::int64_t f) __attribute__((always_inline)) { return expOfNegative(z[f] - top); });
  return {top, sum};
}
LogSumExp logSumExp(const float* z, std::int64_t features) {
  return dispatch<logSumExpOf>(z, features);
}

/// gradient[f] = factor * exp(z[f] - all.top) / all.sum
[[gnu::always_inline]] inline void softmaxGradient(const float* z, float* gradient, std::int64_t features,
                                                   LogSumExp all, double factor) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t f = 0; f < features; ++f)
    gradient[f] = static_cast<float>(factor * (expOfNegative(z[f] - all.top) / all.sum));
}

/// gradient[f] = factor * (mass * exp(z[f] - all.top) / all.sum - labels[f])
[[gnu::always_inline]] inline void softLabelGradient(const float* z, const float* labels, float* gradient,
                                                     std::int64_t features, LogSumExp all, double factor,
                                                     double mass) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t f = 0; f < features; ++f)
    gradient[f] = static_cast<float>(factor * (mass * expOfNegative(z[f] - all.top) / all.sum - labels[f]));
}

double classRow(const float* z, std::int64_t label, float* gradient, std::int64_t features, double factor) {
  const LogSumExp all = logSumExp(z, features);
  const double value = all.log() - z[label];
  if (gradient) {
    const double its = std::exp(z[label] - all.top) / all.sum - 1;
    dispatch<softmaxGradient>(z, gradient, features, all, factor);
    gradient[label] = static_cast<float>(factor * its);
  }
  return value;
}

double softLabelRow(const float* z, const float* labels, float* gradient, std::int64_t features,
                    double factor) {
  const LogSumExp all = logSumExp(z, features);
  const double log = all.log();
  double value = 0, mass = 0;
  for (std::int64_t f = 0; f < features; ++f) {
    // A class with probability 0 adds nothing, even if its logit is -infinity.
    if (labels[f] != 0) value += labels[f] * (log - z[f]);
    mass += labels[f];
  }
  if (gradient) dispatch<softLabelGradient>(z, labels, gradient, features, all, factor, mass);
  return value;
}

double squaredRow(const float* prediction, const float* labels, float* gradient, std::int64_t features,
                  double factor) {
  const auto count = static_cast<double>(features);
  double value = 0;
  for (std::int64_t f = 0; f < features; ++f) {
    const double difference = double{prediction[f]} - labels[f];
    value += difference * difference;
    if (gradient) gradient[f] = static_cast<float>(factor * 2 * difference / count);
  }
  return value / count;
}

double binaryRow(const float* z, const float* labels, float* gradient, std::int64_t features, double factor) {
  const auto count = static_cast<double>(features);
  double value = 0;
  for (std::int64_t f = 0; f < features; ++f) {
    const double logit = z[f];
    const double small = std::exp(-std::abs(logit));  // cannot overflow
    value += std::max(logit, 0.0) - logit * labels[f] + std::log1p(small);
    const double sigmoid = (logit >= 0 ? 1 : small) / (1 + small);
    if (gradient) gradient[f] = static_cast<float>(factor * (sigmoid - labels[f]) / count);
  }
  return value / count;
}

double row(Loss kind, const float* z, const float* labels, float* gradient, std::int64_t features,
           double factor) {
  switch (kind) {
    case Loss::NegativeLogLikelihood:
      return softLabelRow(z, labels, gradient, features, factor);
    case Loss::MeanSquaredError:
      return squaredRow(z, labels, gradient, features, factor);
    case Loss::BinaryCrossEntropy:
      return binaryRow(z, labels, gradient, features, factor);
  }
  return 0;
}

/// A row of weight 0 may hold any label.
void requireClasses(const Tensor& labels, const Tensor& mask, std::int64_t classes) {
  const auto values = labels.span<std::int64_t>();
  for (std::size_t n = 0; n < values.size(); ++n) {
    if ((values[n] >= 0 && values[n] < classes) || (mask.defined() && mask.data<float>()[n] == 0)) continue;
    throw InvalidArgument(fmt::format(
        "loss: the label of {} is {}, expected 0 to {}",
        muster::detail::placeOfRow(static_cast<std::int64_t>(n), labels.shape()), values[n], classes - 1));
  }
}

double weightOf(const Tensor& mask, std::int64_t rows) {
  if (!mask.defined()) return static_cast<double>(rows);
  const auto weights = mask.span<float>();
  double sum = 0;
  for (std::size_t n = 0; n < weights.size(); ++n) {
    if (!(weights[n] >= 0 && weights[n] < INFINITY)) [[unlikely]]
      throw InvalidArgument(fmt::format(
          "loss: the mask of {} is {}; it must be finite and at least 0",
          muster::detail::placeOfRow(static_cast<std::int64_t>(n), mask.shape()),
          std::isnan(weights[n]) ? std::abs(weights[n]) : weights[n]));  // NaN is printed without a sign
    sum += weights[n];
  }
  return sum;
}

}  // namespace

LossValue loss(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context&) {
  const std::int64_t features = predictions.shape()[-1], rows = predictions.elements() / features;
  const bool classes = labels.dtype() == DType::Int64;
  if (classes) requireClasses(labels, mask, features);
  LossValue result{.sum = 0, .weight = weightOf(mask, rows)};
  const double divisor = normaliser != 0 ? normaliser : result.weight;
  for (std::int64_t n = 0; n < rows; ++n) {
    const float* z = predictions.data<float>() + n * features;
    float* grad = gradient.defined() ? gradient.data<float>() + n * features : nullptr;
    const double weight = mask.defined() ? mask.data<float>()[n] : 1.0;
    if (weight == 0) {  // whatever the row contains
      if (grad) std::fill_n(grad, features, 0.0f);
      continue;
    }
    const double factor = weight / divisor;
    const double value = classes ? classRow(z, labels.data<std::int64_t>()[n], grad, features, factor)
                                 : row(kind, z, labels.data<float>() + n * features, grad, features, factor);
    result.sum += weight * value;
  }
  return result;
}

void lossInto(Loss kind, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context) {
  const double divisor = normaliser.defined() ? *normaliser.data<double>() : 0;
  const auto result = cpu::loss(kind, predictions, labels, mask, gradient, divisor, context);
  const double numbers[kLossNumbers] = {result.sum, result.weight, -1, 0};  // no class is out of range
  std::ranges::copy(numbers, value.data<double>());
}

}  // namespace muster::cpu
