#include "muster/core/nn/learning_rate_finder.h"

#include "tests/core/nn/test.h"

using namespace muster;
using namespace muster::test;

namespace {

MultiLayerConfiguration regression() {
  return {
      .seed = 2,
      .updater = Sgd{.learningRate = 0.1},
      .inputShape = {1},
      .layers = {Output{.classes = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity}}};
}

/// y = 3 x over x = -1 and 1: the loss (w - 3)^2 + b^2, so SGD diverges at rates above 1.
ListIterator line(float last = 1) {
  return ListIterator({batchOf(Tensor::of({-1, last}, {2, 1}), Tensor::of({-3, 3}, {2, 1}))});
}

/// The rate where the curve falls fastest before its lowest point, wherever that is.
double steepestOf(const LearningRateCurve& curve) {
  const auto lowest = std::ranges::min_element(curve.scores) - curve.scores.begin();
  std::size_t steepest = 1;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(lowest) && i + 1 < curve.scores.size(); ++i)
    if (curve.scores[i + 1] - curve.scores[i - 1] < curve.scores[steepest + 1] - curve.scores[steepest - 1])
      steepest = i;
  return curve.rates[steepest];
}

}  // namespace

TEST_CASE(
    "the finder finds a rate at which a quadratic falls, does not change the model, and repeats its result") {
  MultiLayerNetwork network(regression());
  network.init();
  auto data = line();
  const auto before = stateBits(network);
  const auto curve = findLearningRate(network, data, {.lowest = 1e-4, .highest = 100, .steps = 60});
  CHECK(stateBits(network) == before);
  CHECK(curve.diverged);
  REQUIRE(curve.scores.size() == curve.rates.size());
  CHECK(curve.rates.front() == 1e-4);
  CHECK(curve.rates[1] / curve.rates[0] == doctest::Approx(std::pow(1e6, 1.0 / 59)).epsilon(1e-12));
  REQUIRE(curve.suggestion);
  CHECK(*curve.suggestion > 1e-3);
  CHECK(*curve.suggestion < 1);  // where SGD no longer converges
  const auto again = findLearningRate(network, data, {.lowest = 1e-4, .highest = 100, .steps = 60});
  CHECK(again.scores == curve.scores);
  CHECK(again.suggestion == curve.suggestion);
}

TEST_CASE(
    "a range that ends before the divergence is searched to its end; a rising loss gives no suggestion") {
  MultiLayerNetwork network(regression());
  network.init();
  auto data = line();
  const auto low = findLearningRate(network, data, {.lowest = 1e-6, .highest = 1e-2, .steps = 20});
  CHECK_FALSE(low.diverged);
  CHECK(low.rates.size() == 20);
  CHECK(low.rates.back() == doctest::Approx(1e-2).epsilon(1e-12));
  const auto high = findLearningRate(network, data, {.lowest = 10, .highest = 100, .steps = 20});
  CHECK(high.diverged);
  CHECK(high.rates.size() < 20);
  CHECK_FALSE(high.suggestion);
}

TEST_CASE(
    "the noise of small batches before the fall does not decide, and clean curves keep their steepest rate") {
  const auto curveOf = [](std::uint64_t seed, std::int64_t size) {
    std::vector<Batch> batches;
    for (std::uint64_t b = 0; b < 50; ++b) {
      Batch batch = classBatch({6}, size, 3, 100 * seed + b);
      for (std::int64_t i = 0; i < size; ++i)
        batch.features[0].value.at(i, batch.labels[0].value.at<std::int64_t>(i)) += 3;
      batches.push_back(std::move(batch));
    }
    MultiLayerNetwork network(
        {.seed = seed,
         .updater = Sgd{},
         .inputShape = {6},
         .layers = {Dense{.units = 16, .activation = Activation::ReLU}, Output{.classes = 3}}});
    network.init();
    ListIterator data(std::move(batches));
    return findLearningRate(network, data);
  };
  int misled = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const auto noisy = curveOf(seed, 8);
    if (steepestOf(noisy) < 1e-4) ++misled;
    REQUIRE(noisy.suggestion);
    CHECK(*noisy.suggestion > 1e-4);
    CHECK(*noisy.suggestion < 10);
  }
  CHECK(misled > 0);  // else these curves test nothing
  const auto clean = curveOf(1, 1000);
  REQUIRE(clean.suggestion);
  CHECK(*clean.suggestion / steepestOf(clean) < 3);
  CHECK(*clean.suggestion / steepestOf(clean) > 1.0 / 3);
}

TEST_CASE("a network without an input shape takes it from the first batch") {
  auto configuration = regression();
  configuration.inputShape = {};
  MultiLayerNetwork network(configuration);
  auto data = line();
  findLearningRate(network, data, {.steps = 10});
  CHECK(network.initialized());
}

TEST_CASE("data whose first score is not finite are refused, and a single batch is used repeatedly") {
  MultiLayerNetwork network(regression());
  auto one = line();
  CHECK(findLearningRate(network, one, {.lowest = 1e-6, .highest = 1e-3, .steps = 100}).rates.size() == 100);
  auto data = line(kNan);
  CHECK(thrown<NonFiniteScore>([&] { findLearningRate(network, data); }) ==
        "learning rate finder: the score is nan before the first step; the data or the model hold a value "
        "that is not finite, or are too large");
}

TEST_CASE("numbers out of range are refused by name") {
  MultiLayerNetwork network(regression());
  auto data = line();
  const auto problem = [&](const LearningRateRange& range) {
    return thrown<InvalidArgument>([&] { findLearningRate(network, data, range); });
  };
  CHECK(problem({.lowest = 0}) == "learning rate finder: expected 0 < lowest < highest, got 0 and 10");
  CHECK(problem({.lowest = 2, .highest = 1}) ==
        "learning rate finder: expected 0 < lowest < highest, got 2 and 1");
  CHECK(problem({.steps = 9}) == "learning rate finder: steps must be at least 10, got 9");
  CHECK(problem({.smoothing = 1}) == "learning rate finder: smoothing must be in [0, 1), got 1");
  CHECK(problem({.divergence = 1}) == "learning rate finder: divergence must be above 1, got 1");
  ListIterator none({});
  CHECK_REFUSED(findLearningRate(network, none), "learning rate finder: the data set has no batches");
}
