#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("after a merge every replica has the same counters") {
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5});
  toyWrapper(model, 2, 2).build().fit(data, 2);
  for (const auto& step : model.control().steps()) {
    INFO("epoch ", step.stamp.epoch, ", sequence ", step.stamp.sequence);
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
