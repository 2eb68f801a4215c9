#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/same_outputs.h"
#include "muster/core/nn/learning_rate_finder.h"
#include "muster/core/nn/recompute_statistics.h"
#include "tests/support/failure.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"
#include "tests/support/unrewound.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("between merges no worker waits for a slower one") {
  // Worker 1 stays in its first step until worker 0 reaches its third and last step of the round.
  ToyModel model;
  Gate gate;
  model.control().onStep = [&](const Batch& batch) {
    if (batch.stamp.sequence == 1) gate.pass();
    if (batch.stamp.sequence == 4) gate.open();
  };
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5, 6});
  toyWrapper(model, 2, 3).build().fit(data);
  CHECK(model.control().steps().size() == 6);
}

TEST_CASE("the reader keeps prefetchBuffer batches ready, and one more for each worker") {
  for (const std::int64_t prefetch : {0, 1, 5}) {
    CAPTURE(prefetch);
    ToyModel model;
    Gate gate;
    std::atomic<std::int64_t> asked{0};
    auto data = ToyIterator::ofValues(std::vector<float>(40, 1.0f));
    auto wrapper = toyWrapper(model, 2, 1).prefetchBuffer(prefetch).build();
    data.onNext = [&](std::int64_t, std::int64_t batch) { asked = std::max(asked.load(), batch + 1); };
    model.control().onStep = [&](const Batch& batch) {
      if (batch.stamp.sequence == 0) gate.pass();
    };
    std::jthread training([&] { wrapper.fit(data); });
    gate.awaitVisitor();
    // Worker 0 holds batch 0; worker 1 takes batch 1, returns it and waits at the merge.
    const auto ahead = prefetch + 2 + 1;
    while (asked < ahead) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(asked == ahead);
    gate.open();
    training.join();
    CHECK(model.control().steps().size() == 40);
  }
}

TEST_CASE("an epoch without a batch is an error at once; for listeners it has begun, and does not end") {
  ToyIterator data({});
  ToyModel model;
  for (const std::int64_t prefetch : {0, 2}) {
    const auto listener = mergedListener();
    auto wrapper = toyWrapper(model, 3).prefetchBuffer(prefetch).listeners({listener}).build();
    CHECK_THROWS_WITH_AS(wrapper.fit(data, 200), doctest::Contains("no batches in epoch 1"), Error);
    CHECK(listener->order() == "fitStart epochStart fitEnd");
  }
  CHECK(model.epoch() == 0);
  CHECK(model.iteration() == 0);
}

TEST_CASE("a stream that reset() does not rewind loses no batch when the wrapper reads the first one") {
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5});
  Unrewound stream(data);
  ToyModel model;
  std::mutex mutex;
  std::set<float> seen;
  model.control().onStep = [&](const Batch& batch) {
    const std::scoped_lock lock(mutex);
    seen.insert(batch.features[0].value.data<float>()[0]);
  };
  toyWrapper(model, 2).build().fit(stream);
  CHECK(seen == std::set<float>{1, 2, 3, 4, 5});
  CHECK(model.control().steps().size() == 5);
}

TEST_CASE("a listener cannot read the training's iterator, by whatever call") {
  auto data = ToyIterator::ofValues({1, 2, 3, 4});
  const std::pair<std::string, std::function<void(Model&, Trainer&)>> rows[] = {
      {"evaluate", [&](Model& other, Trainer&) { evaluate(other, data); }},
      {"evaluate", [&](Model&, Trainer& trainer) { trainer.evaluate(data); }},
      {"recompute statistics", [&](Model& other, Trainer&) { recomputeStatistics(other, data); }},
      {"learning rate finder", [&](Model& other, Trainer&) { findLearningRate(other, data); }},
      {"same outputs", [&](Model& other, Trainer&) { sameOutputs(other, other, data); }},
      {"fit", [&](Model& other, Trainer&) { other.fit(data); }},
      {"fit", [&](Model& other, Trainer&) { toyWrapper(other, 2).build().fit(data); }}};
  for (const int workers : {0, 2})  // 0: model.fit
    for (const auto& [what, read] : rows) {
      ToyModel model, other;
      std::string problem;
      fitWith(model, workers, data, 1, {onMerge([&](const MergeEvent& event) {
                problem = thrown<InvalidArgument>([&] { read(other, event.trainer); });
              })});
      CHECK(problem == (what == "fit"
                            ? "fit: another training reads this iterator, and both would miss batches"
                            : what + ": the training reads this iterator and would miss batches") +
                           "; pass another one");
      CHECK(model.epoch() == 1);
    }
}
