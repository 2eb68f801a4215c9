// TrainingMode::SharedGradients with models whose numbers can be computed by hand.

#include "tests/support/failure.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kSharedWidth = 37;

ParallelWrapper::Builder shared(Model& model, int workers, SharedGradients options = {}) {
  return toyWrapper(model, workers).trainingMode(TrainingMode::SharedGradients).sharedGradients(options);
}

SharedGradients fixed(double threshold) {
  return {.thresholdAlgorithm = FixedThreshold{.threshold = threshold}, .resynchronizationFrequency = 0};
}

/// What merges report.
struct Exchanges {
  std::vector<std::int64_t> bytes, examples;
  std::vector<double> drift;
  std::vector<float> parameters;
  std::shared_ptr<Listener> listener = onMerge([this](const MergeEvent& event) {
    bytes.push_back(event.bytes);
    drift.push_back(event.divergence);
    examples.push_back(event.examples);
    parameters.push_back(dynamic_cast<ToyModel&>(event.trainer.model()).parameters()[0]);
  });
};

// Threshold 1, learning rate 0.5, from p = 0, worker 0 on {2}, worker 1 on {6}:
//   updates 1 and 3, messages 1 and 1: p = 1, residuals 0 and 2;
//   updates 0.5 and 2.5, with the residuals 0.5 and 4.5: messages 0 and 1: p = 1.5, residuals 0.5 and 3.5.
//   The end of the epoch sends the residuals: p = 1.5 + 2 = 3.5.
ToyIterator twoRounds() {
  return ToyIterator::ofValues({2, 6, 2, 6});
}

}  // namespace

TEST_CASE("rounds equal those worked out by hand, and at an epoch's end the whole residual is sent") {
  ToyModel model;
  Exchanges exchanges;
  auto data = twoRounds();
  shared(model, 2, fixed(1)).listeners({exchanges.listener}).build().fit(data);
  CHECK(exchanges.parameters == std::vector<float>{1, 1.5f, 3.5f});
  CHECK(exchanges.examples == std::vector<std::int64_t>{2, 2, 0});
  CHECK(model.parameters()[0] == 3.5f);
  CHECK(model.iteration() == 2);
  CHECK(model.epoch() == 1);
  // A message is 16 bytes plus a word per sent element; worker 0's second message has no elements. The
  // residual is a block of 16 floats, padding included.
  CHECK(exchanges.bytes == std::vector<std::int64_t>{20, 18, 64});
  CHECK(exchanges.drift[0] == 0);
  CHECK(exchanges.drift[1] == 0);
  CHECK(exchanges.drift[2] == doctest::Approx(2 / 1.5));
}

TEST_CASE("replicas are resynchronised every N iterations") {
  ToyModel model;
  auto options = fixed(1);
  options.resynchronizationFrequency = 1;
  Exchanges exchanges;
  auto data = twoRounds();
  shared(model, 2, options).listeners({exchanges.listener}).build().fit(data);
  // Everything is sent each time: the mean of the updates, as with synchronous gradients. No residual is left
  // at the end.
  CHECK(exchanges.parameters == std::vector<float>{2, 3});
  CHECK(exchanges.drift[0] == doctest::Approx(1));  // 1 withheld, relative to 1
}

TEST_CASE("residual clipping drops the part beyond its limit") {
  ToyModel model;
  auto options = fixed(1);
  options.residualClipping = 1;
  options.residualClippingFrequency = 2;
  auto data = twoRounds();
  shared(model, 2, options).build().fit(data);
  CHECK(model.parameters()[0] == 1.5f + (0.5f + 1) / 2);  // 3.5 was clipped to 1
}

TEST_CASE("before every step all replicas hold the same parameters, with more workers than cores") {
  ToyModel model({.size = kSharedWidth, .training = {.updater = Adam{.learningRate = 0.05}}});
  ToyIterator data(randomBatches(6, 52, 4, kSharedWidth, true), kSharedWidth);
  shared(model, 8).build().fit(data, 2);
  CHECK(checkReplicasEqual(model.control()) == 104 - 14);
}

TEST_CASE("with more workers than batches, workers that have not trained have no weight") {
  ToyModel model({.training = halfNesterovs()});
  auto data = ToyIterator::ofValues({2, 6});
  ToyModel exact({.training = halfNesterovs()});
  shared(model, 4, fixed(100)).build().fit(data);
  toyWrapper(exact, 4).trainingMode(TrainingMode::SynchronousGradients).build().fit(data);
  CHECK(model.parameters() == exact.parameters());
  CHECK(model.updaterState("velocity") == exact.updaterState("velocity"));
}

TEST_CASE("residuals are weighted by unmasked examples, and a batch without any sends and loses nothing") {
  ToyIterator uneven({{{2, 2, 2}}, {{6}}});
  ToyModel one;
  shared(one, 2, fixed(100)).build().fit(uneven);
  CHECK(one.parameters()[0] == 1.5f);
  // Round 1 as above: p = 1, residuals 0 and 2. Round 2: worker 0 stays at 1, worker 1 has weight 0 and keeps
  // its 2. At the end the residuals weigh 2 to 1: p = 1 + 2 / 3.
  ToyIterator data({{{2}}, {{6}}, {{1}, {1}}, {{6}, {0}}});
  ToyModel model;
  shared(model, 2, fixed(1)).build().fit(data);
  CHECK(model.parameters()[0] == doctest::Approx(1 + 2.0 / 3));
}

TEST_CASE("averageUpdaters(false): a resynchronisation keeps each worker's momentum") {
  // Learning rate and momentum 0.5. Epoch 1 on {2} and {6} from 0 gives velocities in the ratio 1 to 3. In
  // epoch 2 the workers' steps differ accordingly, unless the velocities were averaged.
  for (const bool average : {true, false}) {
    CAPTURE(average);
    ToyModel model({.training = halfNesterovs()});
    ToyModel averaged({.training = halfNesterovs()});
    auto data = ToyIterator::ofValues({2, 6});
    auto wrapper = shared(model, 2, fixed(100)).averageUpdaters(average).build();
    auto reference = toyWrapper(averaged, 2).averageUpdaters(average).build();
    for (int epoch = 0; epoch < 3; ++epoch) {
      // Only the end of the epoch sends, and sends everything: equivalent to averaging every iteration.
      wrapper.fit(data);
      reference.fit(data);
      CHECK(model.parameters()[0] == doctest::Approx(averaged.parameters()[0]));
      CHECK(model.updaterState("velocity")[0] == doctest::Approx(averaged.updaterState("velocity")[0]));
    }
    ToyModel probe({.training = halfNesterovs()});
    Exchanges exchanges;
    auto bytesOf =
        shared(probe, 2, fixed(100)).averageUpdaters(average).listeners({exchanges.listener}).build();
    bytesOf.fit(data);
    CHECK(exchanges.bytes.at(0) + exchanges.bytes.at(1) == 16 + 64 + (average ? 64 : 0));
  }
}

TEST_CASE("shared gradients with an adaptive threshold learn a mean at a tenth of the bytes") {
  constexpr std::int64_t kSize = 2000;
  ToyModel model({.size = kSize, .training = {.updater = Sgd{.learningRate = 0.05}}});
  ToyIterator data(randomBatches(6, 60, 4, kSize), kSize);
  Exchanges exchanges;
  shared(model, 4, {.thresholdAlgorithm = AdaptiveThreshold{.initial = 1e-2, .maxDensity = 1e-2}})
      .listeners({exchanges.listener})
      .build()
      .fit(data, 20);
  ToyModel exact({.size = kSize, .training = {.updater = Sgd{.learningRate = 0.05}}});
  toyWrapper(exact, 4).trainingMode(TrainingMode::SynchronousGradients).build().fit(data, 20);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    difference += std::pow(model.parameters()[i] - exact.parameters()[i], 2);
    norm += std::pow(exact.parameters()[i], 2);
  }
  CHECK(std::sqrt(difference / norm) < 0.2);
  double bytes = 0;
  for (const auto b : exchanges.bytes) bytes += static_cast<double>(b);
  CHECK(bytes / (15 * 20) < 0.1 * 4 * kSize);
}

TEST_CASE("options of other modes are refused, and the plan says what is shared") {
  ToyModel model;
  CHECK_REFUSED(shared(model, 2).averagingFrequency(2).build(),
                "averagingFrequency(2): with shared gradients workers are merged every iteration, so it must "
                "be 1");
  CHECK_REFUSED(toyWrapper(model, 2).sharedGradients({}).build(),
                "sharedGradients: these options need TrainingMode::SharedGradients");
  CHECK(
      shared(model, 2).build().plan() ==
      "2 workers on cpu (1 thread each, not pinned), sharing encoded updates every iteration (adaptive "
      "threshold from 0.001), whole at the end of each epoch and every 100 iterations: 2 batches per round");
}
