#include "muster/core/comparison/comparison.h"
#include "muster/core/comparison/run_recorder.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/strategies/shared_gradients.h"
#include "tests/parallel/builder_of.h"
#include "tests/support/small_examples.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

/// A network, and a recorder of its training with eight batches of 1, 2, 3, 1, ... examples: 15 in an epoch.
struct Run {
  explicit Run(double learningRate = 0.1, std::int64_t testEvery = 10)
      : model({.seed = 3,
               .updater = Sgd{.learningRate = learningRate},
               .inputShape = {6},
               .layers = {Dense{.units = 8, .activation = Activation::ReLU}, Output{.classes = 4}}}),
        recorder(std::make_shared<RunRecorder>(
            test, RunRecorderOptions{
                      .arm = learningRate < 1 ? "slow" : "wild", .seed = 1, .testEvery = testEvery})) {
    model.init();
  }
  RunRecord fit(ParallelWrapper wrapper) {
    wrapper.fit(train, 2);
    return recorder->finish(wrapper);
  }

  SmallExamples train{8}, test{5};
  MultiLayerNetwork model;
  std::shared_ptr<RunRecorder> recorder;
};

TEST_CASE("a recorded training has the bits of one without a recorder, and its record the merges") {
  Run run, plain;
  toyWrapper(plain.model, 2, 2).build().fit(plain.train, 2);
  const auto record = run.fit(toyWrapper(run.model, 2, 2).listeners({run.recorder}).build());
  CHECK(stateBits(run.model) == stateBits(plain.model));
  // Merges of 7 and 8 examples in each epoch; 10, 20 and 30 are passed by the second, the third and the last.
  REQUIRE(record.points.size() == 3);
  const auto& end = record.end();
  CHECK(textOf(record.points[0].samples, record.points[1].samples, end.samples) == "15 22 30");
  CHECK(textOf(end.iterations, end.rounds, record.summed, record.workers) == "8 4 true 2");
  CHECK(record.end().bytes >= 4 * 4 * (6 * 8 + 8 + 8 * 4 + 4));
  CHECK(record.computeSeconds > 0);
  const auto result = run.model.evaluateTask(run.test);
  CHECK(textOf(end.score, end.loss) == textOf(result.mainScore().second, result.loss()));
}

TEST_CASE("a network that trains by itself has the record of one worker") {
  Run run, other;
  run.model.setListeners({run.recorder});
  run.model.fit(run.train, 2);
  auto alone = run.recorder->finish(run.model),
       wrapped = other.fit(toyWrapper(other.model, 1).listeners({other.recorder}).build());
  for (auto* const record : {&alone, &wrapped})
    for (auto& point : record->points) point.seconds = 0;
  CHECK(alone.points.size() == 3);
  CHECK(alone.points == wrapped.points);
}

TEST_CASE("messages of shared gradients cannot be summed, and a training that diverges is a result") {
  Comparison comparison;
  for (const double learningRate : {0.1, 1e38}) {
    Run run(learningRate, 0);
    try {
      comparison.add(run.fit(builderOf(run.model, 2, SharedGradients{}).listeners({run.recorder}).build()));
    } catch (const TrainingError&) {
      comparison.add(run.recorder->failed(std::current_exception()));
    }
  }
  const auto summary = comparison.summarise();
  const auto &slow = summary.arms[0], &wild = summary.arms[1];
  CHECK(textOf(slow.name, slow.trained(), slow.summed, wild.failures) == "slow true false 1");
}

}  // namespace
}  // namespace muster::test
