#include "tests/support/reference_ops.h"

#include "tests/support/shapes2d.h"
#include "tests/support/test.h"

// Checks that the references' gradients are the derivatives of their values.

namespace muster::test {
namespace {

/// Error of numericGradient: rounding of a sum of about a hundred terms, 1e-13 / 1e-3, plus 1e-12 / 30 times
/// a fifth derivative of up to 1e4 (normalisation divides by at least 1/2, to the fifth power). The tolerance
/// is three times as large.
constexpr double kTolerance = 1e-9;

struct Random {
  std::mt19937_64 engine{freshSeed()};
  Array operator()(const Shape& shape, double low = -1, double high = 1) {
    return randomArray(shape, engine, low, high);
  }
};

using Arrays = std::vector<Array>;

/// Checks that the gradients are the derivatives of the sum of `weights` times `f` by each of its arguments.
void checkGradients(const Arrays& gradients, const std::function<Array(const Arrays&)>& f, const Arrays& at,
                    const Array& weights) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    CAPTURE(i);
    const auto byOne = [&](const Array& moved) {
      Arrays all = at;
      all[i] = moved;
      return f(all);
    };
    CHECK(maxError(gradients[i], numericGradient(byOne, at[i], weights)) < kTolerance);
  }
}

TEST_CASE("the reference convolution's gradients agree with central differences") {
  Random random;
  for (const auto& shape :
       {conv({2, 2, 5, 6}, 3, {.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 0}, .dilation = {1, 2}}),
        conv({2, 4, 4, 5}, 6, {.kernel = {2, 3}, .groups = 2})}) {
    CAPTURE(shape.groups);
    const Array x = random(shape.input()), w = random(shape.weight()), b = random({shape.outChannels}),
                g = random(shape.output());
    const auto [gradWeight, gradBias] = reference::conv2dBackwardWeights(shape, x, g);
    const auto f = [&](const Arrays& at) { return reference::conv2d(shape, at[0], at[1], at[2]); };
    checkGradients({reference::conv2dBackwardData(shape, g, w), gradWeight, gradBias}, f, {x, w, b}, g);
  }
}

TEST_CASE("the reference transposed convolution's gradients agree with central differences") {
  Random random;
  const auto shape = convTranspose({2, 4, 3, 2}, 6,
                                   {.kernel = {2, 3},
                                    .stride = {2, 3},
                                    .padding = {1, 0},
                                    .outputPadding = {1, 2},
                                    .dilation = {2, 1},
                                    .groups = 2});
  const Array x = random(shape.input()), w = random(shape.weight()), b = random({6}),
              g = random(shape.output());
  const auto [gradX, gradWeight, gradBias] = reference::convTranspose2dBackward(shape, x, w, g);
  const auto f = [&](const Arrays& at) { return reference::convTranspose2d(shape, at[0], at[1], at[2]); };
  checkGradients({gradX, gradWeight, gradBias}, f, {x, w, b}, g);
}

TEST_CASE("the reference up-sampling's gradients agree with central differences") {
  Random random;
  const Array x = random({2, 2, 3, 2}), g = random({2, 2, 6, 8}), pair({1, 1, 1, 2}, {1, 3});
  // Two pixels become four, at -1/4, 1/4, 3/4 and 5/4 of the pixels' distance.
  for (const auto& [mode, enlarged] :
       {std::pair(UpsampleMode::Bilinear, Array({1, 1, 1, 4}, {1, 1.5, 2.5, 3})),
        {UpsampleMode::Nearest, Array({1, 1, 1, 4}, {1, 1, 3, 3})}}) {
    const auto f = [mode = mode](const Arrays& at) { return reference::upsample2d(mode, at[0], 6, 8); };
    checkGradients({reference::upsample2dBackward(mode, g, 3, 2)}, f, {x}, g);
    CHECK(maxError(reference::upsample2d(mode, pair, 1, 4), enlarged) == 0);
  }
}

TEST_CASE("a grouped reference convolution equals one convolution a group") {
  Random random;
  const auto shape = conv({2, 4, 4, 5}, 6, {.kernel = {2, 3}, .groups = 2});
  const auto half = conv({2, 2, 4, 5}, 3, {.kernel = {2, 3}});
  const Array x = random(shape.input()), w = random(shape.weight()), b = random({6});
  const auto channels = [](const Array& of, std::int64_t begin, std::int64_t end) {
    Array part({of.shape[0], end - begin, of.shape[2], of.shape[3]});
    for (std::int64_t n = 0; n < of.shape[0]; ++n)
      for (std::int64_t c = begin; c < end; ++c)
        for (std::int64_t h = 0; h < of.shape[2]; ++h)
          for (std::int64_t i = 0; i < of.shape[3]; ++i) part.at(n, c - begin, h, i) = of.at(n, c, h, i);
    return part;
  };
  const Array y = reference::conv2d(shape, x, w, b);
  for (std::int64_t group = 0; group < 2; ++group) {
    Array weight(half.weight()), bias({3});
    for (std::int64_t i = 0; i < weight.shape.elements(); ++i)
      weight.at(i) = w.at(group * weight.shape.elements() + i);
    for (std::int64_t i = 0; i < 3; ++i) bias.at(i) = b.at(3 * group + i);
    CHECK(maxError(channels(y, 3 * group, 3 * group + 3),
                   reference::conv2d(half, channels(x, 2 * group, 2 * group + 2), weight, bias)) == 0);
  }
}

TEST_CASE("the reference convolution equals one worked out by hand") {
  // [1 2 3; 4 5 6; 7 8 9] with [1 0; 0 -1]: each output is a - d of its window, plus 0.5.
  const Array y = reference::conv2d(conv({1, 1, 3, 3}, 1, {.kernel = 2}),
                                    Array({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
                                    Array({1, 1, 2, 2}, {1, 0, 0, -1}), Array({1}, {0.5}));
  CHECK(maxError(y, Array({1, 1, 2, 2}, {-3.5, -3.5, -3.5, -3.5})) == 0);
}

TEST_CASE("the reference batch normalisation's gradients agree with central differences") {
  Random random;
  for (const auto activation : {Activation::Identity, Activation::Tanh})
    for (const Shape& input : {Shape{5, 3}, Shape{3, 2, 2, 3}}) {
      const BatchNormShape shape{.input = input, .epsilon = 0.25, .activation = activation};
      const Shape channels{input[1]};
      const Array x = random(input, -2, 3), gamma = random(channels), beta = random(channels),
                  mean = random(channels), variance = random(channels, 0.5, 2), g = random(input);
      const auto inTraining = [&](const Arrays& at) {
        return reference::batchNorm(shape, at[0], at[1], at[2]);
      };
      const auto inEvaluation = [&](const Arrays& at) {
        return reference::batchNorm(shape, at[0], mean, variance, at[1], at[2]);
      };
      const auto trained = reference::batchNormBackward(shape, x, gamma, beta, g),
                 evaluated = reference::batchNormBackward(shape, x, mean, variance, gamma, beta, g);
      checkGradients({trained.x, trained.gamma, trained.beta}, inTraining, {x, gamma, beta}, g);
      checkGradients({evaluated.x}, inEvaluation, {x, gamma, beta}, g);
    }
}

TEST_CASE("the reference batch normalisation equals one worked out by hand") {
  // Channel 0: 1, 3 with mean 2 and variance 1; channel 1: 4, 4 with variance 0. Epsilon 3 makes roots 2,
  // ~1.7.
  const BatchNormShape shape{.input = {2, 2}, .epsilon = 3};
  const Array x({2, 2}, {1, 4, 3, 4}), gamma({2}, {2, 5}), beta({2}, {0.5, 7});
  CHECK(maxError(reference::batchNorm(shape, x, gamma, beta), Array({2, 2}, {-0.5, 7, 1.5, 7})) == 0);
}

TEST_CASE("the reference layer normalisation's gradients agree with central differences") {
  Random random;
  const Array x = random({3, 5}, -2, 3), gamma = random({5}), beta = random({5}), g = random({3, 5});
  const auto f = [](const Arrays& at) { return reference::layerNorm(at[0], at[1], at[2], 0.25); };
  const auto gradients = reference::layerNormBackward(x, gamma, g, 0.25);
  checkGradients({gradients.x, gradients.gamma, gradients.beta}, f, {x, gamma, beta}, g);
  // 1 and 3: mean 2, variance 1.
  CHECK(maxError(reference::layerNorm(Array({1, 2}, {1, 3}), Array({2}, {2, 5}), Array({2}, {0.5, 7}), 3),
                 Array({1, 2}, {-0.5, 9.5})) == 0);
}

TEST_CASE("the reference pooling's gradients agree with central differences") {
  Random random;
  for (PoolKind kind : {PoolKind::Max, PoolKind::Average}) {
    const auto shape =
        pool({2, 2, 5, 4}, {.kind = kind, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}});
    // Values differ by far more than the step, so that each maximum stays in the same place.
    Array x(shape.input());
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) x.at(i) = static_cast<double>(i * 37 % 80) / 40;
    const Array g = random(shape.output());
    const auto f = [&](const Arrays& at) { return reference::pool2d(shape, at[0]); };
    checkGradients({reference::pool2dBackward(shape, x, g)}, f, {x}, g);
  }
}

TEST_CASE("the reference dense layer's gradients agree with central differences") {
  Random random;
  const Array x = random({4, 3}), w = random({5, 3}), b = random({5}), g = random({4, 5});
  const auto [gradWeight, gradBias] = reference::denseBackwardWeights(x, g);
  const auto f = [](const Arrays& at) { return reference::dense(at[0], at[1], at[2]); };
  checkGradients({reference::denseBackwardData(g, w), gradWeight, gradBias}, f, {x, w, b}, g);
}

TEST_CASE("the reference activations' gradients agree with central differences") {
  Random random;
  for (const auto& [kind, name] : EnumNames<Activation>::kNames) {
    CAPTURE(name);
    Array x = random({3, 4}, 0.1, 3);  // away from the kink at 0
    for (std::size_t i = 0; i < x.values.size(); i += 2) x.values[i] = -x.values[i];
    const Array g = random({3, 4});
    const auto f = [kind = kind](const Arrays& at) { return reference::activation(kind, at[0]); };
    checkGradients({reference::activationBackward(kind, x, g)}, f, {x}, g);
  }
}

TEST_CASE("the reference losses' gradients agree with central differences") {
  Random random;
  const auto check = [](Loss kind, const Array& z, const Array& labels, const Array& mask) {
    Array weights = mask;
    for (double& weight : weights.values) weight /= 3.5;
    const auto f = [&](const Arrays& at) { return reference::losses(kind, at[0], labels); };
    checkGradients({reference::lossGradient(kind, z, labels, mask, 3.5)}, f, {z}, weights);
  };
  for (const auto& [kind, name] : EnumNames<Loss>::kNames) {
    CAPTURE(name);
    const Array labels = random({4, 3}, 0, 1);
    Array z = random({4, 3}, -2, 2);
    for (std::size_t i = 0; i < z.values.size(); ++i)  // away from the kinks: mae's at 0, huber's at -1 and 1
      while (std::abs(std::remainder(z.values[i] - labels.values[i], 1)) < 0.01) z.values[i] += 0.01;
    check(kind, z, labels, Array({4}, {1, 0, 0.5, 2}));
  }
  check(Loss::NegativeLogLikelihood, random({3, 4}, -2, 2), Array({3}, {2, 0, 3}), Array({3}, {1, 1, 1}));
}

TEST_CASE("layouts store every element at a different place") {
  const Shape shape{17, 18, 2, 3};
  for (Layout layout :
       {Layout::RowMajor, Layout::ChannelsLast, Layout::ChannelBlocks, Layout::SampleBlocks}) {
    Array x(shape);
    for (std::int64_t i = 0; i < shape.elements(); ++i) x.at(i) = static_cast<double>(i + 1);
    const Tensor tensor = toTensor(x, layout);
    CHECK(maxError(tensor, x) == 0);
    CHECK(paddingIsZero(tensor));
    double sum = 0;
    for (float value : tensor.span<float>()) sum += value;
    CHECK(sum == 1836.0 * 1837.0 / 2);
  }
  // By hand: sample 16, channel 17, row 1, column 2 of [17, 18, 2, 3].
  CHECK(storageIndex(shape, Layout::ChannelsLast, 16, 17, 1, 2) == ((16 * 2 + 1) * 3 + 2) * 18 + 17);
  CHECK(storageIndex(shape, Layout::ChannelBlocks, 16, 17, 1, 2) ==
        (((16 * 2 + 1) * 2 + 1) * 3 + 2) * 16 + 1);
  CHECK(storageIndex(shape, Layout::SampleBlocks, 16, 17, 1, 2) ==
        (((1 * 18 + 17) * 2 + 1) * 3 + 2) * 16 + 0);
}

TEST_CASE("a tensor of NaN fails every comparison") {
  CHECK(std::isinf(maxError(nanTensor({2, 2}), Array({2, 2}))));
  CHECK(std::isinf(maxError(Tensor::zeros({2, 2}), Array({4}))));
  CHECK_FALSE(paddingIsZero(nanTensor({1, 1, 2, 2}, Layout::ChannelBlocks)));
}

}  // namespace
}  // namespace muster::test
