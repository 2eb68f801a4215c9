// TrainingMode::SynchronousGradients with models whose numbers can be computed by hand.

#include "tests/support/failure.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kSynchronousWidth = 37;

ParallelWrapper::Builder synchronous(Model& model, int workers) {
  return toyWrapper(model, workers).trainingMode(TrainingMode::SynchronousGradients);
}

// With learning rate 0.5, two workers on {2} and {6} move halfway to 4: 2, 3, 3.5, 3.75.
constexpr float kAfter[] = {0, 2, 3, 3.5, 3.75};

}  // namespace

TEST_CASE("before every step all replicas hold the same bits") {
  ToyModel model(
      {.size = kSynchronousWidth, .training = {.updater = Adam{.learningRate = 0.05}, .clipNorm = 1}});
  ToyIterator data(randomBatches(6, 26, 4, kSynchronousWidth, true), kSynchronousWidth);
  synchronous(model, 4).build().fit(data, 2);
  CHECK(checkReplicasEqual(model.control()) == 52 - 14);
}

TEST_CASE("an idle worker takes part in the update, and gradients are weighted by examples") {
  // Round 1: {0, 0, 6} and {2}: mean of 4 examples 2, p = 1. Round 2: {3} alone: p = 2.
  ToyIterator data({{{0, 0, 6}}, {{2}}, {{3}}});
  ToyModel model;
  auto wrapper = synchronous(model, 2).build();
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 2);
  wrapper.fit(data);  // the idle worker's replica was updated, too: (2 + 2) / 2 = 2, then 2.5
  CHECK(model.parameters()[0] == 2.5);
}

TEST_CASE("if an update fails, the model comes from a replica that has finished it") {
  for (const int failing : {0, 1}) {
    CAPTURE(failing);
    ToyModel model;
    std::atomic<const Model*> unlucky{nullptr};
    model.control().onStep = [&](const Batch& b) {
      for (const auto& step : model.control().steps())
        if (step.stamp.sequence == b.stamp.sequence && b.stamp.sequence == 4 + failing) unlucky = step.model;
    };
    model.control().onUpdate = [&](const Model& replica, const BatchStamp& stamp) {
      if (stamp.iteration == 2 && &replica == unlucky) boom();
    };
    auto data = twosAndSixes();
    auto wrapper = synchronous(model, 2).build();
    const auto failure = failureOf(wrapper, data);
    CHECK(failure.cause == "boom");
    CHECK(failure.worker == failing);
    CHECK(model.parameters()[0] == kAfter[3]);
    CHECK(model.iteration() == 3);
    model.control().onUpdate = {};
    checkTrainsAgain(wrapper, model);
  }
}

TEST_CASE("an idle worker whose update fails names the last batch it had") {
  ToyModel model;
  model.control().onUpdate = [](const Model&, const BatchStamp& s) {
    if (s.iteration == 1 && s.sequence == 1) boom();  // worker 1, which has only the second batch
  };
  auto data = ToyIterator::ofValues({2, 6, 2});
  auto wrapper = synchronous(model, 2).build();
  const auto failure = failureOf(wrapper, data);
  CHECK(failure.text == "worker 1 on cpu failed in batch 2 of epoch 1: boom");
  CHECK(model.parameters()[0] == 2);  // worker 0 has finished: {2} leaves its parameter at 2
}

TEST_CASE("if every replica fails in its update, the model stays unchanged, and the next fit() counts on") {
  for (const auto& [workers, iteration] : {std::pair{2, 0}, {1, 1}}) {
    CAPTURE(workers);
    ToyModel model;
    model.setParameters({1});
    model.control().onUpdate = [failing = iteration](const Model&, const BatchStamp& stamp) {
      if (stamp.iteration == failing) boom();
    };
    auto data = twosAndSixes();
    auto wrapper = synchronous(model, workers).build();
    CHECK(failureOf(wrapper, data).cause == "boom");
    CHECK(model.parameters()[0] == 1);
    CHECK(model.iteration() == 0);
    model.control().onUpdate = {};
    checkTrainsAgain(wrapper, model);
  }
}

TEST_CASE("a round whose examples are all masked has no gradient") {
  ToyIterator masked({{{2}, {0}}, {{6}, {0}}, {{2}}, {{6}}});
  ToyModel model;
  synchronous(model, 2).build().fit(masked);
  CHECK(model.parameters()[0] == 2);  // the first round has no gradient, the second moves halfway to 4
  CHECK(model.iteration() == 2);
}

TEST_CASE("options that do not fit synchronous gradients are refused") {
  ToyModel model;
  const std::string merged = "with synchronous gradients workers are merged every iteration";
  CHECK_REFUSED(synchronous(model, 2).averagingFrequency(3).build(),
                "averagingFrequency(3): " + merged + ", so it must be 1");
  CHECK_REFUSED(synchronous(model, 2).synchronousUntil(3).build(),
                "synchronousUntil(3): " + merged + " for ever, so it has no meaning");
  CHECK_REFUSED(synchronous(model, 2).averageUpdaters(false).build(),
                "averageUpdaters(false): with synchronous gradients the updaters' states are equal anyway");
  CHECK_REFUSED(synchronous(model, 2).measureDivergence(true).build(),
                "measureDivergence(true): " + merged + ", and their parameters stay equal, bit for bit");
  CHECK(synchronous(model, 2).build().plan() ==
        "2 workers on cpu (1 thread each, not pinned), averaging gradients every iteration: 2 batches per "
        "round");
}
