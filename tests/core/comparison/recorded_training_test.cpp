#include "muster/core/comparison/comparison.h"
#include "muster/core/comparison/run_recorder.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/strategies/averaging.h"
#include "muster/parallel/strategies/shared_gradients.h"
#include "tests/support/small_examples.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"

namespace muster {
namespace {

MultiLayerConfiguration small(double learningRate = 0.1) {
  return {.seed = 3,
          .updater = Sgd{.learningRate = learningRate},
          .inputShape = {6},
          .layers = {Dense{.units = 8, .activation = Activation::ReLU}, Output{.classes = 4}}};
}

/// Eight batches of 1, 2, 3, 1, ... examples: 15 in an epoch.
constexpr int kBatches = 8;

ParallelWrapper wrapperOf(MultiLayerNetwork& model, int workers, AnyStrategy strategy,
                          Listeners listeners = {}) {
  return ParallelWrapper::Builder(model)
      .workers(workers)
      .strategy(std::move(strategy))
      .pinThreads(false)
      .listeners(std::move(listeners))
      .build();
}

TEST_CASE("a recorded training has the bits of one without a recorder, and its record the merges") {
  test::SmallExamples train(kBatches), test(5);
  MultiLayerNetwork model(small()), plain(small());
  model.init();
  plain.init();
  wrapperOf(plain, 2, Averaging{.frequency = 2}).fit(train, 2);
  const auto recorder =
      std::make_shared<RunRecorder>(test, RunRecorderOptions{.arm = "a", .seed = 1, .testEvery = 10});
  auto wrapper = wrapperOf(model, 2, Averaging{.frequency = 2}, {recorder});
  wrapper.fit(train, 2);
  const auto record = recorder->finish(wrapper);
  CHECK(test::stateBits(model) == test::stateBits(plain));
  // Merges of 7 and 8 examples in each epoch; 10, 20 and 30 are passed by the second, the third and the last.
  REQUIRE(record.points.size() == 3);
  CHECK(record.points[0].samples == 15);
  CHECK(record.points[1].samples == 22);
  CHECK(record.end().samples == 30);
  CHECK(record.end().iterations == 8);
  CHECK(record.end().rounds == 4);
  CHECK(record.end().bytes >= 4 * 4 * (6 * 8 + 8 + 8 * 4 + 4));
  CHECK(record.summed);
  CHECK(record.workers == 2);
  CHECK(record.computeSeconds > 0);
  const auto result = model.evaluateTask(test);
  CHECK(record.end().score == result.mainScore().second);
  CHECK(record.end().loss == result.loss());
}

TEST_CASE("a network that trains by itself has the record of one worker") {
  test::SmallExamples train(kBatches), test(5);
  const auto points = [&](auto fit) {
    MultiLayerNetwork model(small());
    model.init();
    const auto recorder =
        std::make_shared<RunRecorder>(test, RunRecorderOptions{.arm = "a", .testEvery = 10});
    auto record = fit(model, recorder);
    for (auto& point : record.points) point.seconds = 0;
    return record.points;
  };
  const auto alone = points([&](MultiLayerNetwork& model, const std::shared_ptr<RunRecorder>& recorder) {
    model.setListeners({recorder});
    model.fit(train, 2);
    return recorder->finish(model);
  });
  const auto wrapped = points([&](MultiLayerNetwork& model, const std::shared_ptr<RunRecorder>& recorder) {
    auto wrapper = wrapperOf(model, 1, Averaging{.frequency = 1}, {recorder});
    wrapper.fit(train, 2);
    return recorder->finish(wrapper);
  });
  CHECK(alone.size() == 3);
  CHECK(alone == wrapped);
}

TEST_CASE("messages of shared gradients cannot be summed, and a training that diverges is a result") {
  test::SmallExamples train(kBatches), test(5);
  Comparison comparison;
  for (const double learningRate : {0.1, 1e38}) {
    MultiLayerNetwork model(small(learningRate));
    model.init();
    const auto recorder =
        std::make_shared<RunRecorder>(test, RunRecorderOptions{.arm = learningRate < 1 ? "slow" : "wild"});
    auto wrapper = wrapperOf(model, 2, SharedGradients{}, {recorder});
    try {
      wrapper.fit(train, 2);
      comparison.add(recorder->finish(wrapper));
    } catch (const TrainingError&) {
      comparison.add(recorder->failed(std::current_exception()));
    }
  }
  const auto summary = comparison.summarise();
  CHECK(summary.arms[0].name == "slow");
  CHECK(summary.arms[0].trained());
  CHECK_FALSE(summary.arms[0].summed);
  CHECK(summary.arms[1].failures == 1);
}

}  // namespace
}  // namespace muster
