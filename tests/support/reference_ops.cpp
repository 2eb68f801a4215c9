#include "tests/support/reference_ops.h"

#include <numbers>

namespace muster::test::reference {

Array dense(const Array& x, const Array& weight, const Array& bias) {
  const std::int64_t rows = x.shape[0], in = x.shape[1], out = weight.shape[0];
  Array y({rows, out});
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = bias.at(o);
      for (std::int64_t i = 0; i < in; ++i) sum += x.at(n * in + i) * weight.at(o * in + i);
      y.at(n * out + o) = sum;
    }
  return y;
}

Array denseBackwardData(const Array& gradY, const Array& weight) {
  const std::int64_t rows = gradY.shape[0], in = weight.shape[1], out = weight.shape[0];
  Array gradX({rows, in});
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t o = 0; o < out; ++o)
      for (std::int64_t i = 0; i < in; ++i)
        gradX.at(n * in + i) += gradY.at(n * out + o) * weight.at(o * in + i);
  return gradX;
}

std::pair<Array, Array> denseBackwardWeights(const Array& x, const Array& gradY) {
  const std::int64_t rows = x.shape[0], in = x.shape[1], out = gradY.shape[1];
  Array gradWeight({out, in}), gradBias({out});
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t o = 0; o < out; ++o) {
      gradBias.at(o) += gradY.at(n * out + o);
      for (std::int64_t i = 0; i < in; ++i)
        gradWeight.at(o * in + i) += gradY.at(n * out + o) * x.at(n * in + i);
    }
  return {gradWeight, gradBias};
}

namespace {

/// Calls f(index of the first class, stride between classes) for every place of [N, C] or [N, C, H, W].
void forEachPlace(const Shape& shape, const std::function<void(std::int64_t, std::int64_t)>& f) {
  const std::int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t p = 0; p < pixels; ++p) f(n * shape[1] * pixels + p, pixels);
}

double normalCdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double valueOf(Activation kind, double x) {
  switch (kind) {
    case Activation::ReLU:
      return x > 0 ? x : 0;
    case Activation::LeakyReLU:
      return x > 0 ? x : 0.01 * x;
    case Activation::Tanh:
      return std::tanh(x);
    case Activation::Sigmoid:
      return sigmoid(x);
    case Activation::GELU:
      return x * normalCdf(x);
    default:
      return x;
  }
}

double slopeOf(Activation kind, double x) {
  switch (kind) {
    case Activation::ReLU:
      return x > 0 ? 1 : 0;
    case Activation::LeakyReLU:
      return x > 0 ? 1 : 0.01;
    case Activation::Tanh:
      return 1 / (std::cosh(x) * std::cosh(x));
    case Activation::Sigmoid:
      return sigmoid(x) * sigmoid(-x);
    case Activation::GELU:
      return normalCdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    default:
      return 1;
  }
}

Array softmax(const Array& x) {
  Array y(x.shape);
  forEachPlace(x.shape, [&](std::int64_t first, std::int64_t stride) {
    double sum = 0;
    for (std::int64_t c = 0; c < x.shape[1]; ++c) sum += std::exp(x.at(first + c * stride));
    for (std::int64_t c = 0; c < x.shape[1]; ++c)
      y.at(first + c * stride) = std::exp(x.at(first + c * stride)) / sum;
  });
  return y;
}

}  // namespace

Array activation(Activation kind, const Array& x) {
  if (kind == Activation::Softmax) return softmax(x);
  Array y(x.shape);
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) y.at(i) = valueOf(kind, x.at(i));
  return y;
}

Array activationBackward(Activation kind, const Array& x, const Array& gradY) {
  Array gradX(x.shape);
  if (kind != Activation::Softmax) {
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) gradX.at(i) = gradY.at(i) * slopeOf(kind, x.at(i));
    return gradX;
  }
  const Array y = softmax(x);
  forEachPlace(x.shape, [&](std::int64_t first, std::int64_t stride) {
    for (std::int64_t c = 0; c < x.shape[1]; ++c)
      for (std::int64_t k = 0; k < x.shape[1]; ++k) {
        const double yc = y.at(first + c * stride), yk = y.at(first + k * stride);
        gradX.at(first + c * stride) += gradY.at(first + k * stride) * yk * ((c == k) - yc);
      }
  });
  return gradX;
}

Array dropout(const Array& x, double rate, const std::function<bool(std::int64_t, std::int64_t)>& keep) {
  const std::int64_t features = x.shape.dropFirst().elements();
  Array y(x.shape);
  for (std::int64_t n = 0; n < x.shape[0]; ++n)
    for (std::int64_t e = 0; e < features; ++e)
      y.at(n * features + e) = keep(n, e) ? x.at(n * features + e) / (1 - rate) : 0;
  return y;
}

namespace {

double logSoftmax(const Array& z, std::int64_t n, std::int64_t f) {
  const std::int64_t features = z.shape[1];
  double sum = 0;  // sum of exp(z_k - z_f), at least 1
  for (std::int64_t k = 0; k < features; ++k)
    sum += std::exp(z.at(n * features + k) - z.at(n * features + f));
  return -std::log(sum);
}

/// The weight of class f in row n of the labels.
double massOf(const Array& labels, std::int64_t n, std::int64_t f, std::int64_t features) {
  return labels.shape.rank() == 1 ? (labels.at(n) == static_cast<double>(f)) : labels.at(n * features + f);
}

}  // namespace

Array losses(Loss kind, const Array& predictions, const Array& labels) {
  const std::int64_t rows = predictions.shape[0], features = predictions.shape[1];
  Array result({rows});
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t f = 0; f < features; ++f) {
      const double z = predictions.at(n * features + f), t = massOf(labels, n, f, features);
      const auto count = static_cast<double>(features);
      if (kind == Loss::NegativeLogLikelihood) result.at(n) -= t * logSoftmax(predictions, n, f);
      if (kind == Loss::MeanSquaredError) result.at(n) += (z - t) * (z - t) / count;
      if (kind == Loss::MeanAbsoluteError) result.at(n) += std::abs(z - t) / count;
      if (kind == Loss::Huber)  // delta 1
        result.at(n) += (std::abs(z - t) < 1 ? (z - t) * (z - t) / 2 : std::abs(z - t) - 0.5) / count;
      if (kind == Loss::BinaryCrossEntropy)
        result.at(n) -= (t * std::log(sigmoid(z)) + (1 - t) * std::log(sigmoid(-z))) / count;
    }
  return result;
}

Array lossGradient(Loss kind, const Array& predictions, const Array& labels, const Array& mask,
                   double normaliser) {
  const std::int64_t rows = predictions.shape[0], features = predictions.shape[1];
  const auto count = static_cast<double>(features);
  Array gradient(predictions.shape);
  for (std::int64_t n = 0; n < rows; ++n) {
    double mass = 0;
    for (std::int64_t f = 0; f < features; ++f) mass += massOf(labels, n, f, features);
    for (std::int64_t f = 0; f < features; ++f) {
      const double z = predictions.at(n * features + f), t = massOf(labels, n, f, features);
      double slope = 0;
      if (kind == Loss::NegativeLogLikelihood) slope = mass * std::exp(logSoftmax(predictions, n, f)) - t;
      if (kind == Loss::MeanSquaredError) slope = 2 * (z - t) / count;
      if (kind == Loss::MeanAbsoluteError) slope = ((z > t) - (z < t)) / count;
      if (kind == Loss::Huber) slope = std::clamp(z - t, -1.0, 1.0) / count;
      if (kind == Loss::BinaryCrossEntropy) slope = (sigmoid(z) - t) / count;
      gradient.at(n * features + f) = mask.at(n) * slope / normaliser;
    }
  }
  return gradient;
}

}  // namespace muster::test::reference
