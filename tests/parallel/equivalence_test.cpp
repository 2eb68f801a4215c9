#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/state_bits.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kWidth = 37;  // more than a cache line, and no multiple of one

std::vector<TrainingOptions> everyKindOfTraining() {
  return {{.updater = Sgd{.learningRate = 0.3}},
          {.updater = Nesterovs{.learningRate = 0.1, .momentum = 0.9}, .l2 = 0.01},
          {.updater = Adam{.learningRate = CosineSchedule{.initial = 0.1, .iterations = 20}}},
          {.updater = Nesterovs{.learningRate = StepSchedule{.initial = 0.2, .decay = 0.5, .every = 4}},
           .clipNorm = 0.5},
          {.updater = RmsProp{.learningRate = WarmUpSchedule{.iterations = 6, .then = 0.05}}, .l1 = 0.001}};
}

double largestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("workers(1) equals model.fit() bit for bit, at any frequency") {
  for (const auto& training : everyKindOfTraining())
    for (const std::int64_t frequency : {1, 2, 3, 7}) {
      CAPTURE(training.updater.type());
      CAPTURE(frequency);
      const ToyOptions options{.size = kWidth, .training = training, .statistics = true};
      ToyIterator data(randomBatches(3, 8, 5, kWidth, true), kWidth);
      ToyModel alone(options), wrapped(options);
      auto wrapper = toyWrapper(wrapped, 1, frequency).build();
      for (const std::int64_t epochs : {2, 1}) {
        alone.fit(data, epochs);
        wrapper.fit(data, epochs);
      }
      CHECK(alone.allBits() == wrapped.allBits());
    }
}

TEST_CASE("averageUpdaters(false) with one worker equals model.fit(), too") {
  const ToyOptions options{.size = kWidth, .training = {.updater = Adam{.learningRate = 0.05}}};
  ToyIterator data(randomBatches(4, 5, 3, kWidth), kWidth);
  ToyModel alone(options), wrapped(options);
  auto wrapper = toyWrapper(wrapped, 1, 2).averageUpdaters(false).build();
  for (int call = 0; call < 3; ++call) {
    alone.fit(data);
    wrapper.fit(data);
  }
  CHECK(alone.allBits() == wrapped.allBits());
}

// With g_w the gradient of worker w's batch and n_w its examples, sum n_w (p - lr g_w) / N = p - lr sum n_w
// g_w / N, and the last sum is the gradient of the joined batch. Momentum is linear, too. In float32, each of
// the 36 steps rounds numbers around 1 a few times: 36 * 4 * 6e-8 < 1e-5.
TEST_CASE(
    "averageUpdaters(false): after init() momentum starts at zero, with the bits of a new wrapper and of "
    "fit()") {
  const auto make = [] {
    auto model = std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration{
        .seed = 9,
        .updater = Nesterovs{.learningRate = 0.1, .momentum = 0.9},
        .inputShape = {kWidth},
        .layers = {Dense{.units = 6, .activation = Activation::Tanh}, Output{.classes = 3}}});
    model->init();
    return model;
  };
  Tensor features = Tensor::empty({40, kWidth}), labels = Tensor::empty({40}, DType::Int64);
  for (std::int64_t i = 0; i < features.elements(); ++i)
    features.data<float>()[i] = static_cast<float>(i * 7 % 11) / 11;
  for (std::int64_t n = 0; n < 40; ++n) labels.data<std::int64_t>()[n] = n % 3;
  InMemoryDataSetIterator data(features, labels, 4);
  for (const int workers : {1, 3}) {
    CAPTURE(workers);
    const auto trained = [&](bool before) {
      const auto model = make();
      auto wrapper = toyWrapper(*model, workers, 2).averageUpdaters(false).build();
      if (before) {
        wrapper.fit(data);
        model->init();
      }
      wrapper.fit(data, 2);
      return stateBits(*model);
    };
    const auto again = trained(true);
    CHECK(again == trained(false));
    if (workers > 1) continue;
    const auto alone = make();
    alone->fit(data, 2);
    CHECK(again == stateBits(*alone));
  }
}

TEST_CASE("averagingFrequency(1): W workers equal one on the joined batches") {
  const std::vector<TrainingOptions> linear = {
      {.updater = Sgd{.learningRate = 0.3}},
      {.updater = Nesterovs{.learningRate = 0.1, .momentum = 0.9}},
      {.updater = Nesterovs{.learningRate = StepSchedule{.initial = 0.2, .decay = 0.5, .every = 10}}}};
  for (const auto& training : linear)
    for (const int workers : {2, 3, 4})
      for (const bool ragged : {false, true}) {
        CAPTURE(training.updater.type());
        CAPTURE(workers);
        CAPTURE(ragged);
        const ToyOptions options{.size = kWidth, .training = training, .statistics = true};
        const auto batches =
            randomBatches(6, 26, 4, kWidth, ragged);  // the last round is partial for 3 and 4
        ToyIterator small(batches, kWidth);
        ToyIterator large(joined(batches, static_cast<std::size_t>(workers)), kWidth);
        ToyModel many(options), one(options);
        auto wrapper = toyWrapper(many, workers).build();
        wrapper.fit(small, 3);
        one.fit(large, 3);
        CHECK(largestDifference(many.parameters(), one.parameters()) < 1e-5);
        CHECK(largestDifference(many.statistics(), one.statistics()) < 1e-5);
        CHECK(many.iteration() == one.iteration());
        CHECK(many.epoch() == one.epoch());
        if (training.updater.type() == Nesterovs::kType)
          CHECK(largestDifference(many.updaterState("velocity"), one.updaterState("velocity")) < 1e-5);
      }
}
