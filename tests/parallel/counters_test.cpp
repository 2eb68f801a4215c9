#include <doctest/doctest.h>

#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("the iteration counts dispatched rounds, over epochs and fit() calls") {
  // 5 batches over 2 workers: 3 rounds per epoch, the last with one batch.
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5});
  auto wrapper = toyWrapper(model, 2, 2).build();
  wrapper.fit(data, 2);
  CHECK(model.iteration() == 6);
  CHECK(model.epoch() == 2);
  wrapper.fit(data);
  CHECK(model.iteration() == 9);
  CHECK(model.epoch() == 3);
}

TEST_CASE("after a merge every replica has the same counters") {
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5});
  auto wrapper = toyWrapper(model, 2, 2).build();
  wrapper.fit(data, 2);
  for (const auto& step : model.control().steps()) {
    CAPTURE(step.stamp.epoch);
    CAPTURE(step.stamp.sequence);
    // The merges of an epoch follow rounds 2 and 3 (and 5 and 6): a replica has the counters of the last
    // merge.
    const std::int64_t round = step.stamp.sequence / 2;
    CHECK(step.iteration == step.stamp.epoch * 3 + (round == 2 ? 2 : 0));
    CHECK(step.epoch == step.stamp.epoch);
  }
}

TEST_CASE("schedules see the iteration, the same in every worker") {
  // Learning rate 1 in iterations 0 and 1, then negligible. Round 0 moves worker 0 to 10 and worker 1 to 20,
  // merged 15; round 1 to 30 and 40, merged 35. Afterwards nothing changes over epochs and fit() calls.
  ToyModel model(
      {.training = {.updater = Sgd{.learningRate = StepSchedule{.initial = 1, .decay = 1e-30, .every = 2}}}});
  auto data = ToyIterator::ofValues({10, 20, 30, 40, 50, 60});
  auto wrapper = toyWrapper(model, 2).build();
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 35);
  wrapper.fit(data, 2);
  CHECK(model.parameters()[0] == 35);
  CHECK(model.iteration() == 9);
}

TEST_CASE("a stopped fit() leaves the epoch unfinished, and counts its rounds") {
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5, 6, 7, 8});
  auto wrapper = toyWrapper(model, 2, 1).listeners({stopAt(2)}).build();
  wrapper.fit(data, 3);
  CHECK(model.iteration() == 2);
  CHECK(model.epoch() == 0);
  // Later calls train whole epochs of 4 rounds.
  wrapper.fit(data);
  CHECK(model.iteration() == 6);
  CHECK(model.epoch() == 1);
  const auto steps = model.control().steps();
  CHECK(steps.back().stamp.iteration == 5);
}

TEST_CASE("the model's score is that of the last merge, with and without listeners") {
  // The last round is {4} and {0}: scores 0.5 (p - 4)^2 and 0.5 p^2 from the p before it.
  // First round: {2}, {6}: p = 1 and 3, merged 2. So (2 + 2) / 2.
  const std::vector<Listeners> audiences = {{}, {std::make_shared<RecordingListener>()}};
  for (const auto& listeners : audiences) {
    ToyModel model;
    auto data = ToyIterator::ofValues({2, 6, 4, 0});
    auto wrapper = toyWrapper(model, 2).listeners(listeners).build();
    wrapper.fit(data);
    CHECK(model.score() == 2);
  }
}
