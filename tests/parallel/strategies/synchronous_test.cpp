// TrainingMode::SynchronousGradients with models whose numbers can be computed by hand.

#include "tests/support/failure.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kWidth = 37;

ParallelWrapper::Builder synchronous(Model& model, int workers) {
  return toyWrapper(model, workers).trainingMode(TrainingMode::SynchronousGradients);
}

// With learning rate 0.5, two workers on {2} and {6} move halfway to 4: 2, 3, 3.5, 3.75.
constexpr float kAfter[] = {0, 2, 3, 3.5, 3.75};

}  // namespace

TEST_CASE("before every step all replicas hold the same bits") {
  ToyModel model({.size = kWidth, .training = {.updater = Adam{.learningRate = 0.05}, .clipNorm = 1}});
  ToyIterator data(randomBatches(6, 26, 4, kWidth, true), kWidth);
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

TEST_CASE("a worker's listener is called between update and merge, with the penalty in the score") {
  // Weights 3: penalty 0.5 l2 9. Scores of {2} and {6} at p = 3: 0.5 and 4.5.
  ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}, .l2 = 0.25}});
  model.setParameters({3});
  auto perWorker = workerListener();
  auto merged = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event != "merge") return;
    CHECK(perWorker->calls("iteration").size() == static_cast<std::size_t>(2 * call.iteration));
    CHECK(dynamic_cast<ToyModel&>(trainer.model()).parameters()[0] ==
          doctest::Approx(call.iteration == 1 ? 3 - 0.5 * (3 - 4 + 0.75)
                                              : 3.125 - 0.5 * (3.125 - 4 + 0.78125)));
    CHECK(trainer.model().iteration() == call.iteration);
  });
  auto data = ToyIterator::ofValues({2, 6, 2, 6});
  synchronous(model, 2).listeners({perWorker, merged}).build().fit(data);
  CHECK(merged->order() == "fitStart epochStart merge merge epochEnd fitEnd");
  const auto steps = perWorker->calls("iteration");
  REQUIRE(steps.size() == 4);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(steps[i].score == doctest::Approx((steps[i].worker == 0 ? 0.5 : 4.5) + 1.125));
  const auto merges = merged->calls("merge");
  CHECK(merges[0].score == doctest::Approx(2.5 + 1.125));
  CHECK(merges[0].examples == 2);
  const double second = 0.25 * (1.125 * 1.125 + 2.875 * 2.875) + 0.125 * 3.125 * 3.125;
  CHECK(merges[1].score == doctest::Approx(second));
  CHECK(merged->calls("epochEnd")[0].score == doctest::Approx((2.5 + 1.125 + second) / 2));
  CHECK(model.score() == doctest::Approx(second));
}

TEST_CASE("a merge counts the bytes of a gradient, and one worker sends none") {
  for (const int workers : {1, 2}) {
    ToyModel model({.size = 32});
    ToyIterator data(randomBatches(6, 4, 4, 32), 32);
    std::int64_t last = -1;
    const auto bytes = onMerge([&](const MergeEvent& event) { last = event.bytes; });
    synchronous(model, workers).listeners({bytes}).build().fit(data);
    CHECK(last == (workers == 1 ? 0 : 32 * 4));
  }
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

TEST_CASE("an iterator that fails while workers merge leaves whole rounds, at any moment") {
  // Round r is on {2 + r} and {6 + r}: its mean is 4 + r, its variance (of two batches of one) 4.
  float after[4] = {0};
  for (int r = 0; r < 3; ++r) after[r + 1] = 0.5f * (after[r] + 4 + static_cast<float>(r));
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}, .statistics = true});
    RandomDelays sleep(seed, 200us);
    model.control().onStep = [&](const Batch&) { sleep(); };
    model.control().onUpdate = [&](const Model&, const BatchStamp&) { sleep(); };
    auto data = ToyIterator::ofValues({2, 6, 3, 7, 4, 8, 5, 9});
    data.onNext = [&](std::int64_t, std::int64_t batch) {
      sleep();
      if (batch == 6) boom();
    };
    auto wrapper = synchronous(model, 2).build();
    const auto failure = failureOf(wrapper, data);
    CHECK(failure.cause == "boom");
    const auto rounds = model.iteration();
    REQUIRE(rounds <= 3);
    CHECK(model.parameters()[0] == after[rounds]);
    CHECK(model.statistics() ==
          (rounds == 0 ? std::vector<float>{0, 0} : std::vector<float>{3 + static_cast<float>(rounds), 4}));
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

TEST_CASE("a stop applies all computed gradients") {
  ToyModel model;
  ParallelWrapper* running = nullptr;
  model.control().onStep = [&](const Batch& b) {
    if (b.stamp.sequence == 5) running->stopFit();
  };
  auto data = ToyIterator::ofValues(std::vector<float>(1000, 4.0f));
  auto wrapper = synchronous(model, 2).build();
  running = &wrapper;
  wrapper.fit(data);
  CHECK(model.epoch() == 0);
  const auto rounds = model.iteration();
  REQUIRE(rounds >= 3);
  REQUIRE(rounds <= 4);
  CHECK(model.parameters()[0] == doctest::Approx(4 - 4 * std::pow(0.5, static_cast<double>(rounds))));
}

TEST_CASE("options that do not fit synchronous gradients are refused") {
  ToyModel model;
  const auto refusal = [&](auto set) {
    return thrown<InvalidArgument>([&] {
      auto builder = synchronous(model, 2);
      set(builder);
      builder.build();
    });
  };
  CHECK(refusal([](auto& b) { b.averagingFrequency(3); }) ==
        "averagingFrequency(3): with synchronous gradients workers are merged every iteration, so it must be "
        "1");
  CHECK(refusal([](auto& b) { b.synchronousUntil(3); }) ==
        "synchronousUntil(3): with synchronous gradients workers are merged every iteration for ever, so it "
        "has no "
        "meaning");
  CHECK(refusal([](auto& b) { b.averageUpdaters(false); }) ==
        "averageUpdaters(false): with synchronous gradients the updaters' states are equal anyway");
  CHECK(refusal([](auto& b) { b.measureDivergence(true); }) ==
        "measureDivergence(true): with synchronous gradients workers are merged every iteration, and their "
        "parameters "
        "stay equal, bit for bit");
  CHECK(synchronous(model, 2).build().plan() ==
        "2 workers on cpu (1 thread each, not pinned), averaging gradients every iteration: 2 batches per "
        "round");
}
