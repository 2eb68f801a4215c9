#include "tests/support/reference_ops.h"

namespace muster::test::reference {
namespace {

/// Calls f(index of a value, its channel) for all of [N, C] or [N, C, H, W].
template <typename F>
void forEachValue(const Shape& shape, F f) {
  const std::int64_t elements = shape.elements(), channels = shape[1],
                     pixels = elements / (shape[0] * channels);
  for (std::int64_t i = 0; i < elements; ++i) f(i, i / pixels % channels);
}

/// The normalised values, before gamma and beta.
Array normalised(const Array& x, const Array& mean, const Array& variance, double epsilon) {
  Array n(x.shape);
  forEachValue(x.shape, [&](std::int64_t i, std::int64_t c) {
    n.at(i) = (x.at(i) - mean.at(c)) / std::sqrt(variance.at(c) + epsilon);
  });
  return n;
}

/// gamma n + beta, before the activation.
Array scaled(const Array& n, const Array& gamma, const Array& beta) {
  Array y(n.shape);
  forEachValue(n.shape,
               [&](std::int64_t i, std::int64_t c) { y.at(i) = gamma.at(c) * n.at(i) + beta.at(c); });
  return y;
}

/// {sum of g, sum of g n}, [C] each.
std::pair<Array, Array> channelSums(const Array& g, const Array& n) {
  Array sums({g.shape[1]}), products({g.shape[1]});
  forEachValue(g.shape, [&](std::int64_t i, std::int64_t c) {
    sums.at(c) += g.at(i);
    products.at(c) += g.at(i) * n.at(i);
  });
  return {sums, products};
}

}  // namespace

std::pair<Array, Array> channelMoments(const Array& x) {
  Array mean({x.shape[1]}), variance({x.shape[1]});
  const double count = static_cast<double>(x.shape.elements() / x.shape[1]);
  forEachValue(x.shape, [&](std::int64_t i, std::int64_t c) { mean.at(c) += x.at(i) / count; });
  forEachValue(x.shape, [&](std::int64_t i, std::int64_t c) {
    variance.at(c) += (x.at(i) - mean.at(c)) * (x.at(i) - mean.at(c)) / count;
  });
  return {mean, variance};
}

Spread spreadOf(const Array& x, double epsilon) {
  Array variance = channelMoments(x).second, least({x.shape[1]}), most({x.shape[1]});
  std::ranges::fill(least.values, std::numeric_limits<double>::infinity());
  std::ranges::fill(most.values, -std::numeric_limits<double>::infinity());
  forEachValue(x.shape, [&](std::int64_t i, std::int64_t c) {
    least.at(c) = std::min(least.at(c), x.at(i));
    most.at(c) = std::max(most.at(c), x.at(i));
  });
  Spread largest{0, 0};
  for (std::int64_t c = 0; c < x.shape[1]; ++c) {
    const double inverse = 1 / std::sqrt(variance.at(c) + epsilon);
    largest.inverse = std::max(largest.inverse, inverse);
    largest.distance = std::max(largest.distance, (most.at(c) - least.at(c)) * inverse);
  }
  return largest;
}

Array batchNorm(const BatchNormShape& shape, const Array& x, const Array& gamma, const Array& beta) {
  const auto [mean, variance] = channelMoments(x);
  return batchNorm(shape, x, mean, variance, gamma, beta);
}

Array batchNorm(const BatchNormShape& shape, const Array& x, const Array& mean, const Array& variance,
                const Array& gamma, const Array& beta) {
  return activation(shape.activation, scaled(normalised(x, mean, variance, shape.epsilon), gamma, beta));
}

BatchNormGradients batchNormBackward(const BatchNormShape& shape, const Array& x, const Array& gamma,
                                     const Array& beta, const Array& gradY) {
  const auto [mean, variance] = channelMoments(x);
  auto gradients = batchNormBackward(shape, x, mean, variance, gamma, beta, gradY);
  // So far with constant statistics. Their dependence on x subtracts the gradient's mean and its projection
  // on n.
  const Array n = normalised(x, mean, variance, shape.epsilon);
  const Array g = gradients.x;
  const auto [sums, products] = channelSums(g, n);
  const double count = static_cast<double>(shape.valuesPerChannel());
  forEachValue(x.shape, [&, &along = products, &sum = sums](std::int64_t i, std::int64_t c) {
    gradients.x.at(i) -= sum.at(c) / count + n.at(i) * along.at(c) / count;
  });
  return gradients;
}

BatchNormGradients batchNormBackward(const BatchNormShape& shape, const Array& x, const Array& mean,
                                     const Array& variance, const Array& gamma, const Array& beta,
                                     const Array& gradY) {
  const Array n = normalised(x, mean, variance, shape.epsilon);
  const Array g = activationBackward(shape.activation, scaled(n, gamma, beta), gradY);
  const auto [sums, products] = channelSums(g, n);
  Array gradX(x.shape);
  forEachValue(x.shape, [&, &var = variance](std::int64_t i, std::int64_t c) {
    gradX.at(i) = g.at(i) * gamma.at(c) / std::sqrt(var.at(c) + shape.epsilon);
  });
  return {gradX, products, sums};
}

namespace {

Array transposed(const Array& x) {
  const std::int64_t rows = x.shape[0], columns = x.shape[1];
  Array y({columns, rows});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) y.at(c * rows + r) = x.at(r * columns + c);
  return y;
}

/// Rows are the channels of the transpose.
Array normalisedRows(const Array& x, double epsilon) {
  const Array columns = transposed(x);
  const auto [mean, variance] = channelMoments(columns);
  return transposed(normalised(columns, mean, variance, epsilon));
}

}  // namespace

Array layerNorm(const Array& x, const Array& gamma, const Array& beta, double epsilon) {
  return scaled(normalisedRows(x, epsilon), gamma, beta);
}

BatchNormGradients layerNormBackward(const Array& x, const Array& gamma, const Array& gradY, double epsilon) {
  const Array columns = transposed(x), zeros({x.shape[0]}),
              ones({x.shape[0]}, std::vector<double>(static_cast<std::size_t>(x.shape[0]), 1));
  const BatchNormShape shape{.input = columns.shape, .epsilon = epsilon};
  const Array gradN = scaled(gradY, gamma, Array({x.shape[1]}));
  const auto [sums, products] = channelSums(gradY, normalisedRows(x, epsilon));
  return {transposed(batchNormBackward(shape, columns, ones, zeros, transposed(gradN)).x), products, sums};
}

}  // namespace muster::test::reference
