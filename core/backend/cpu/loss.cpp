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

constexpr float kLowest = -3.4028235e38f;

constexpr std::int64_t kBlock = 1024;  // classes whose exps are kept between the two passes over a row

/// exps[f] = exp(x(f)) for n x <= 0, and nearly 0 from there to a multiple of kLanes.
template <typename F>
[[gnu::always_inline]] inline void expsOf(std::int64_t n, F x, double* exps) {
  double lanes[kLanes];
  std::int64_t f = 0;
  for (; f + kLanes <= n; f += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = x(f + lane);
    sixteenExpsOfNegative(lanes, exps + f);
  }
  if (f == n) return;
  for (double& lane : lanes) lane = -1000;
  for (int lane = 0; f + lane < n; ++lane) lanes[lane] = x(f + lane);
  sixteenExpsOfNegative(lanes, exps + f);
}

/// Calls gradientOf(first class, number of classes, exps, maximum and sum) for each block of a row. In rows
/// of several blocks exps are computed twice.
template <typename Gradient>
[[gnu::always_inline]] inline LogSumExp softmaxRowOf(const float* z, std::int64_t features,
                                                     Gradient gradientOf) {
  double exps[kBlock];
  LogSumExp all{.top = largestOf(
                    features, kLowest, [=](std::int64_t f) __attribute__((always_inline)) { return z[f]; }),
                .sum = 0};
  const auto expsFrom = [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
    const float* from = z + begin;
    const double top = all.top;
    expsOf(
        count, [=](std::int64_t f) __attribute__((always_inline)) { return from[f] - top; }, exps);
  };
  for (std::int64_t begin = 0; begin < features; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, features - begin);
    expsFrom(begin, count);
    all.sum += sumOf<double>(
        count, [&](std::int64_t f) __attribute__((always_inline)) { return exps[f]; });
  }
  for (std::int64_t begin = 0; begin < features; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, features - begin);
    if (features > kBlock) expsFrom(begin, count);
    gradientOf(begin, count, exps, all);
  }
  return all;
}

/// gradient[f] = factor * exp(z[f] - top) / sum
[[gnu::always_inline]] inline LogSumExp classRowOf(const float* z, float* gradient, std::int64_t features,
                                                   double factor) {
  return softmaxRowOf(
      z, features,
      [=](std::int64_t begin, std::int64_t count, const double* exps, LogSumExp all)
          __attribute__((always_inline)) {
            if (!gradient) return;
            const double scale = factor / all.sum;
            MUSTER_INDEPENDENT_ITERATIONS
            for (std::int64_t f = 0; f < count; ++f)
              gradient[begin + f] = static_cast<float>(exps[f] * scale);
          });
}

/// @param shareOf  the row's label, as a share of each class.
/// @return the row's loss; gradient[f] = factor * (mass * exp(z[f] - top) / sum - shareOf(f))
template <typename Shares>
[[gnu::always_inline]] inline double sharesRowOf(const float* z, Shares shareOf, float* gradient,
                                                 std::int64_t features, double factor) {
  const auto mass = sumOf<double>(features, shareOf);
  double value = 0;
  softmaxRowOf(
      z, features,
      [&](std::int64_t begin, std::int64_t count, const double* exps, LogSumExp all)
          __attribute__((always_inline)) {
            const float* logits = z + begin;
            const double log = all.log(), scale = factor * mass / all.sum;
            double terms[kBlock];
            // A class with probability 0 adds nothing, even if its logit is -infinity.
            for (std::int64_t f = 0; f < count; ++f) {
              const double share = shareOf(begin + f);
              terms[f] = share != 0 ? share * (log - logits[f]) : 0.0;
            }
            value += sumOf<double>(
                count, [&](std::int64_t f) __attribute__((always_inline)) { return terms[f]; });
            if (!gradient) return;
            MUSTER_INDEPENDENT_ITERATIONS
            for (std::int64_t f = 0; f < count; ++f)
              gradient[begin + f] = static_cast<float>(scale * exps[f] - factor * shareOf(begin + f));
          });
  return value;
}

[[gnu::always_inline]] inline double softLabelRowOf(const float* z, const float* labels, float* gradient,
                                                    std::int64_t features, double factor) {
  return sharesRowOf(
      z, [=](std::int64_t f) __attribute__((always_inline)) { return double{labels[f]}; }, gradient, features,
      factor);
}

/// With smoothed labels. @param labels  null: the row's class is `label`.
[[gnu::always_inline]] inline double smoothedRowOf(const float* z, const float* labels, std::int64_t label,
                                                   float* gradient, std::int64_t features, double factor,
                                                   double smoothing) {
  const double rest = 1 - smoothing, each = smoothing / static_cast<double>(features);
  return sharesRowOf(
      z,
      [=](std::int64_t f) __attribute__((always_inline)) {
        const double share = labels ? double{labels[f]} : f == label ? 1.0 : 0.0;
        return rest * share + each;
      },
      gradient, features, factor);
}

double ofClass(float logit, LogSumExp all) {
  return all.log() - logit;
}
/// The gradient with respect to the logit of the row's class.
float gradientOfClass(float logit, LogSumExp all, double factor) {
  return static_cast<float>(factor * (std::exp(logit - all.top) / all.sum - 1));
}

double classRow(const float* z, std::int64_t label, float* gradient, std::int64_t features, double factor) {
  const float logit = z[label];
  const LogSumExp all = dispatch<classRowOf>(z, gradient, features, factor);
  if (gradient) gradient[label] = gradientOfClass(logit, all, factor);
  return ofClass(logit, all);
}

/// Rows of at most sixteen classes, one row in each lane. Results have the same bits as classRow, which also
/// sums so few classes in order.
struct FewClasses {
  LogSumExp rows[kLanes];
  float gradient[kLanes * kLanes];  // [class, lane]; not valid for the row's own class
};
[[gnu::always_inline]] inline void fewClassesOf(const float* z, std::int64_t rows, std::int64_t features,
                                                const double* factors, FewClasses* result) {
  float logits[kLanes * kLanes] = {}, top[kLanes];
  double exps[kLanes * kLanes], sums[kLanes] = {};
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t f = 0; f < features; ++f) logits[f * kLanes + n] = z[n * features + f];
  for (float& lane : top) lane = kLowest;
  for (std::int64_t f = 0; f < features; ++f)
    for (int n = 0; n < kLanes; ++n) {
      const float logit = logits[f * kLanes + n];
      top[n] = logit > top[n] ? logit : top[n];
    }
  for (std::int64_t f = 0; f < features; ++f) {
    double x[kLanes];
    for (int n = 0; n < kLanes; ++n) x[n] = logits[f * kLanes + n] - double{top[n]};
    sixteenExpsOfNegative(x, exps + f * kLanes);
    for (int n = 0; n < kLanes; ++n) sums[n] += exps[f * kLanes + n];
  }
  for (int n = 0; n < kLanes; ++n) result->rows[n] = {top[n], sums[n]};
  if (!factors) return;
  for (std::int64_t f = 0; f < features; ++f)
    for (int n = 0; n < kLanes; ++n)
      result->gradient[f * kLanes + n] = static_cast<float>(factors[n] / sums[n] * exps[f * kLanes + n]);
}

[[gnu::always_inline]] inline double squaredRowOf(const float* prediction, const float* labels,
                                                  float* gradient, std::int64_t features, double factor) {
  const double scale = factor * 2 / static_cast<double>(features);
  const auto difference = [=](std::int64_t f) __attribute__((always_inline)) {
    return double{prediction[f]} - labels[f];
  };
  const auto value = sumOf<double>(
      features, [=](std::int64_t f) __attribute__((always_inline)) { return difference(f) * difference(f); });
  if (gradient) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (std::int64_t f = 0; f < features; ++f) gradient[f] = static_cast<float>(scale * difference(f));
  }
  return value / static_cast<double>(features);
}

[[gnu::always_inline]] inline double absoluteRowOf(const float* prediction, const float* labels,
                                                   float* gradient, std::int64_t features, double factor) {
  const double scale = factor / static_cast<double>(features);
  const auto difference = [=](std::int64_t f) __attribute__((always_inline)) {
    return static_cast<double>(prediction[f]) - labels[f];
  };
  const auto value = sumOf<double>(
      features, [=](std::int64_t f) __attribute__((always_inline)) { return std::fabs(difference(f)); });
  if (gradient)
    for (std::int64_t f = 0; f < features; ++f) {
      const double d = difference(f);  // 0 and NaN stay
      gradient[f] = static_cast<float>(scale * (d > 0 ? 1 : d < 0 ? -1 : d));
    }
  return value / static_cast<double>(features);
}

[[gnu::always_inline]] inline double huberRowOf(const float* prediction, const float* labels, float* gradient,
                                                std::int64_t features, double factor, double delta) {
  const double scale = factor / static_cast<double>(features);
  const auto difference = [=](std::int64_t f) __attribute__((always_inline)) {
    return static_cast<double>(prediction[f]) - labels[f];
  };
  const auto value = sumOf<double>(
      features, [=](std::int64_t f) __attribute__((always_inline)) {
        const double size = std::fabs(difference(f));
        return size <= delta ? 0.5 * size * size : delta * (size - 0.5 * delta);
      });
  if (gradient)
    for (std::int64_t f = 0; f < features; ++f) {
      const double d = difference(f);
      gradient[f] = static_cast<float>(scale * (d > delta ? delta : d < -delta ? -delta : d));
    }
  return value / static_cast<double>(features);
}

/// 1 + grown = (1 + q[0]) (1 + q[1]) ... of n numbers from 0 to 1: the sum of log1p(q[f]) is log1p(grown).
/// All terms are positive, so small numbers keep their digits.
[[gnu::always_inline]] inline double productMinusOne(std::int64_t n, const double* q) {
  double lanes[kLanes] = {};
  overLanes(
      n, [&](int lane, std::int64_t f)
             __attribute__((always_inline)) { lanes[lane] = lanes[lane] * q[f] + (lanes[lane] + q[f]); });
  double grown = 0;
  for (const double lane : lanes) grown = grown * lane + (grown + lane);
  return grown;
}

[[gnu::always_inline]] inline double binaryRowOf(const float* z, const float* labels, float* gradient,
                                                 std::int64_t features, double factor) {
  constexpr std::int64_t kMostFactors = 512;  // a product of so many numbers up to 2 does not overflow
  const auto count = static_cast<double>(features);
  const double scale = factor / count;
  double value = 0, small[kMostFactors];  // exp(-|logit|), which cannot overflow
  for (std::int64_t begin = 0; begin < features; begin += kMostFactors) {
    const std::int64_t n = std::min(kMostFactors, features - begin);
    const float *logits = z + begin, *shares = labels + begin;
    expsOf(
        n, [=](std::int64_t f) __attribute__((always_inline)) { return -double{std::fabs(logits[f])}; },
        small);
    value += sumOf<double>(
        n, [=](std::int64_t f) __attribute__((always_inline)) {
          const double logit = logits[f];
          return 0.5 * (logit + std::fabs(logit)) - logit * shares[f];  // max(logit, 0) - logit * share
        });
    value += std::log1p(productMinusOne(n, small));
    if (!gradient) continue;
    MUSTER_INDEPENDENT_ITERATIONS
    for (std::int64_t f = 0; f < n; ++f) {
      const double sigmoid = (logits[f] >= 0 ? 1 : small[f]) / (1 + small[f]);
      gradient[begin + f] = static_cast<float>(scale * (sigmoid - shares[f]));
    }
  }
  return value / count;
}

double row(const LossRule& rule, const float* z, const float* labels, float* gradient, std::int64_t features,
           double factor) {
  switch (rule.kind) {
    case Loss::NegativeLogLikelihood:
      if (rule.labelSmoothing > 0)
        return dispatch<smoothedRowOf>(z, labels, std::int64_t{-1}, gradient, features, factor,
                                       rule.labelSmoothing);
      return dispatch<softLabelRowOf>(z, labels, gradient, features, factor);
    case Loss::MeanSquaredError:
      return dispatch<squaredRowOf>(z, labels, gradient, features, factor);
    case Loss::BinaryCrossEntropy:
      return dispatch<binaryRowOf>(z, labels, gradient, features, factor);
    case Loss::MeanAbsoluteError:
      return dispatch<absoluteRowOf>(z, labels, gradient, features, factor);
    case Loss::Huber:
      return dispatch<huberRowOf>(z, labels, gradient, features, factor, rule.delta);
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

/// The rows of a batch and their weights.
struct Rows {
  Rows(const Tensor& predictions, const Tensor& weights, Tensor& gradient, double normaliser)
      : features(predictions.shape()[-1]),
        count(predictions.elements() / features),
        mask(weights),
        grad(gradient.defined() ? gradient.data<float>() : nullptr),
        result{.sum = 0, .weight = weightOf(weights, count)},
        divisor(normaliser != 0 ? normaliser : result.weight) {}

  double weightAt(std::int64_t n) const { return mask.defined() ? mask.data<float>()[n] : 1.0; }
  float* gradientOf(std::int64_t n) const { return grad ? grad + n * features : nullptr; }

  /// Calls value(n, factor) for the rows [from, end) except rows of weight 0, which may contain anything.
  template <typename Value>
  void add(std::int64_t from, std::int64_t end, Value value) {
    for (std::int64_t n = from; n < end; ++n) {
      const double weight = weightAt(n);
      if (weight != 0)
        result.sum += weight * value(n, weight / divisor);
      else if (grad)
        std::fill_n(gradientOf(n), features, 0.0f);
    }
  }

  const std::int64_t features, count;
  const Tensor& mask;
  float* const grad;
  LossValue result;
  const double divisor;
};

}  // namespace

LossValue loss(const OwnLoss& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context&) {
  Rows rows(predictions, mask, gradient, normaliser);
  const auto features = static_cast<std::size_t>(rows.features);
  rows.add(0, rows.count, [&](std::int64_t n, double factor) {
    const std::span<float> grad = rows.grad ? std::span(rows.gradientOf(n), features) : std::span<float>();
    const double value = rule.ofRow({predictions.data<float>() + n * rows.features, features},
                                    {labels.data<float>() + n * rows.features, features}, grad);
    for (float& g : grad) g = static_cast<float>(factor * g);
    return value;
  });
  return rows.result;
}

LossValue loss(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
               Tensor& gradient, double normaliser, Context&) {
  const bool classes = labels.dtype() == DType::Int64;
  const bool binary = rule.kind == Loss::BinaryCrossEntropy;
  if (classes) requireClasses(labels, mask, binary ? 2 : predictions.shape()[-1]);
  Rows batch(predictions, mask, gradient, normaliser);
  const std::int64_t features = batch.features, rows = batch.count;
  const float* z = predictions.data<float>();
  float* const grad = batch.grad;
  if (!classes) {
    batch.add(0, rows, [&](std::int64_t n, double factor) {
      return row(rule, z + n * features, labels.data<float>() + n * features, batch.gradientOf(n), features,
                 factor);
    });
    return batch.result;
  }
  const std::int64_t* label = labels.data<std::int64_t>();
  if (binary) {
    batch.add(0, rows, [&](std::int64_t n, double factor) {
      const auto share = static_cast<float>(label[n]);
      return row(rule, z + n, &share, batch.gradientOf(n), features, factor);
    });
    return batch.result;
  }
  if (rule.labelSmoothing > 0) {
    batch.add(0, rows, [&](std::int64_t n, double factor) {
      return dispatch<smoothedRowOf>(z + n * features, static_cast<const float*>(nullptr), label[n],
                                     batch.gradientOf(n), features, factor, rule.labelSmoothing);
    });
    return batch.result;
  }
  if (features > kLanes) {
    batch.add(0, rows, [&](std::int64_t n, double factor) {
      return classRow(z + n * features, label[n], batch.gradientOf(n), features, factor);
    });
    return batch.result;
  }
  for (std::int64_t from = 0; from < rows; from += kLanes) {
    const std::int64_t end = std::min(rows, from + kLanes);
    FewClasses few;
    double factors[kLanes] = {};
    for (std::int64_t n = from; n < end; ++n) factors[n - from] = batch.weightAt(n) / batch.divisor;
    dispatch<fewClassesOf>(z + from * features, end - from, features, grad ? factors : nullptr, &few);
    batch.add(from, end, [&](std::int64_t n, double factor) {
      const std::int64_t lane = n - from;
      const float logit = z[n * features + label[n]];
      if (grad) {
        for (std::int64_t f = 0; f < features; ++f) grad[n * features + f] = few.gradient[f * kLanes + lane];
        grad[n * features + label[n]] = gradientOfClass(logit, few.rows[lane], factor);
      }
      return ofClass(logit, few.rows[lane]);
    });
  }
  return batch.result;
}

void lossInto(const LossRule& rule, const Tensor& predictions, const Tensor& labels, const Tensor& mask,
              Tensor& gradient, const Tensor& normaliser, Tensor& value, Context& context) {
  const double divisor = normaliser.defined() ? *normaliser.data<double>() : 0;
  const auto result = cpu::loss(rule, predictions, labels, mask, gradient, divisor, context);
  const double numbers[kLossNumbers] = {result.sum, result.weight, -1, 0};  // no class is out of range
  std::ranges::copy(numbers, value.data<double>());
}

}  // namespace muster::cpu
