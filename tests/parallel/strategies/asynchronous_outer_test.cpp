#include "muster/parallel/strategies/asynchronous_outer.h"

#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/failure.h"
#include "tests/support/list_iterator.h"
#include "tests/support/on_merge.h"
#include "tests/support/rounding.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

ToyIterator raggedData(int batches) {
  return ToyIterator(randomBatches(5, batches, 4, kRuleWidth, /*ragged=*/true), kRuleWidth);
}

/// Writes down the merges, with the user's first parameter after each.
std::shared_ptr<Listener> recordMerges(std::vector<std::string>& merges) {
  return onMerge([&merges](const MergeEvent& e) {
    REQUIRE(e.values.size() == 3);
    CHECK(e.values[2].name == "period");
    merges.push_back(fmt::format("{} {} {} {} {} {}", e.iteration, e.batchesInEpoch, e.examples,
                                 e.values[0].value, e.values[1].value,
                                 static_cast<ToyModel&>(e.trainer.model()).parameters()[0]));
  });
}

}  // namespace

TEST_CASE("arrivals equal those worked out by hand: one worker of double speed, half of each move applied") {
  // p = 0, learning rate 0.5, values 2, 6, 2, 6; worker 0 gets the first, third and fourth.
  //   time 0.5: worker 0 is at 1: W = 0 + (1 - 0) / 2 = 0.5.
  //   time 1: worker 0 is at 1.25: W = 0.5 + 0.75 / 2 = 0.875. Worker 1 is at 3, from 0, and W has changed
  //           twice: W = 0.875 + 3 / 2 = 2.375.
  //   time 1.5: worker 0, from 0.875, is at 3.4375, and W has changed once: W = 2.375 + 2.5625 / 2 = 3.65625.
  //   At the end of the epoch nothing arrives, and worker 1 takes W.
  for (const int devices : {0, 1, 2})
    for (const bool listens : {false, true}) {
      CAPTURE(devices);
      ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
      auto data = ToyIterator::ofValues({2, 6, 2, 6});
      std::vector<std::string> merges;
      wrapperOf(model, 2, AsynchronousOuter{.speeds = {2, 1}}, devices,
                listens ? Listeners{recordMerges(merges)} : Listeners{})
          .fit(data);
      CHECK(model.parameters()[0] == 3.65625f);
      CHECK(model.iteration() == 2);
      // Iteration; batches in the epoch; examples, arrivals, staleness of this landing; model.
      if (listens)
        CHECK(merges == std::vector<std::string>{"1 1 1 1 0 0.5", "2 2 1 1 0 0.875", "2 3 1 1 2 2.375",
                                                 "2 4 1 1 1 3.65625", "2 4 0 0 0 3.65625"});
    }
}

TEST_CASE("an arrival whose examples were all masked does not count, and its worker takes the global model") {
  // Four equal workers, rate 1, momentum 0.5, learning rate 0.5, two passes over values 2, 6, 2, 6; worker
  // 2's first example is masked. Workers 0, 1 and 3 give W = 0.25, 1, 1.75; A = 1.75, of three arrivals.
  // Then:
  //   worker 0 from 0.25 to 1.125: W = 1.96875, the fourth arrival: D = 1.96875, A = 0
  //   worker 1 from 1 to 3.5, worker 2 from 1 to 1.5, worker 3 from 1.75 to 3.875: W = 3.25, A = 1.28125
  //   the end of the epoch completes the step: W = 3.25 + 0.5 D = 4.234375
  for (const bool listens : {false, true}) {
    ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
    ToyIterator data(std::vector<ToyBatch>{{{2}}, {{6}}, {{2}, {0}}, {{6}}, {{2}}, {{6}}, {{2}}, {{6}}});
    wrapperOf(model, 4, AsynchronousOuter{.momentum = 0.5}, 0,
              listens ? Listeners{std::make_shared<Listener>()} : Listeners{})
        .fit(data);
    CHECK(model.parameters()[0] == 4.234375f);
  }
}

TEST_CASE("arrivals that wait for a slow worker are merged each by itself, in the order of arrival") {
  // Worker 0 is four times as fast, and at most one arrival ahead. Rate 1: an arrival moves W by half of the
  // worker's move; learning rate 0.5. Worker 0: 8 -> 4, W = 2; then from 2 to 5. It waits until worker 1
  // (0 -> 2) has arrived and landed: worker 0's arrival gives W = 2 + 1.5 = 3.5, worker 1's W = 4.5, from
  // which both continue. One batch is left, for worker 0: from 4.5 to 6.25, W = 4.5 + 0.875.
  ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
  auto data = ToyIterator::ofValues({8, 4, 8, 8});
  std::vector<double> arrivals;
  const auto listener = onMerge([&](const MergeEvent& e) { arrivals.push_back(e.values[0].value); });
  wrapperOf(model, 2, AsynchronousOuter{.speeds = {4, 1}, .staleness = 1}, 0, {listener}).fit(data);
  CHECK(model.parameters()[0] == 5.375f);
  REQUIRE(arrivals.size() >= 3);
  for (std::size_t m = 0; m < 3; ++m) CHECK(arrivals[m] == 1);
}

TEST_CASE("statistics of an arrival replace its share of the global ones, as a mixture of distributions") {
  // The toy's statistics are the mean and variance of its last batch, initially 0. Worker 0 arrives with mean
  // 2: half of 0 and half of 2 is mean 1, variance 1. Worker 1 arrives with mean 6: mean 3.5, and variance (1
  // + 1) / 2 + 36 / 2 - 3.5^2 = 6.75.
  for (const int devices : {0, 1, 2}) {
    ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}, .statistics = true});
    auto data = ToyIterator::ofValues({2, 6});
    wrapperOf(model, 2, AsynchronousOuter{}, devices).fit(data);
    CHECK(model.statistics() == std::vector<float>{3.5f, 6.75f});
  }
}

TEST_CASE("a worker's period is chosen when it continues: by iteration, by epoch, by learning rate") {
  // Equal workers on twelve batches, one iteration for each two: up to iteration 2, they arrive after each
  // iteration.
  const auto iterations = [](const Period& period, const Schedule& rate = 0.5) {
    ToyModel model({.training = {.updater = Sgd{.learningRate = rate}}});
    auto data = ToyIterator::ofValues(std::vector<float>(24, 2));
    std::vector<std::int64_t> at;
    const auto listener = onMerge([&](const MergeEvent& e) { at.push_back(e.iteration); });
    const double forever = std::numeric_limits<double>::infinity();
    wrapperOf(model, 2, AsynchronousOuter{.frequency = period, .grace = forever}, 0, {listener}).fit(data);
    return at;
  };
  using Iterations = std::vector<std::int64_t>;
  CHECK(iterations(4) == Iterations{4, 8, 12});
  CHECK(iterations(Period::postLocal(3, 4)) == Iterations{1, 2, 3, 7, 11, 12});
  CHECK(iterations(Period::qsr(2, {.alpha = 1}), StepSchedule{.initial = 0.5, .decay = 0.8, .every = 4}) ==
        Iterations{4, 10, 12});  // 4, then (1 / 0.4)^2 = 6.25, then 9.77
  Period first(6);
  first.untilEpoch = 1;
  first.first = 5;
  CHECK(iterations(first) == Iterations{5, 10, 12});
}

TEST_CASE("each worker counts its own updates, also over fit() calls, from the model's count") {
  for (const bool trainedBefore : {false, true}) {
    ToyModel model({.size = kRuleWidth, .training = {.updater = Adam{.learningRate = 0.05}}});
    auto data = raggedData(9);
    if (trainedBefore) model.fit(data);
    model.control().forgetSteps();
    auto wrapper = wrapperOf(model, 2, AsynchronousOuter{.frequency = 2, .speeds = {2, 1}});
    wrapper.fit(data);
    wrapper.fit(data);
    std::map<const Model*, std::vector<std::int64_t>> updates;
    for (const auto& step : model.control().steps()) updates[step.model].push_back(step.stamp.update);
    REQUIRE(updates.size() == 2);
    for (const auto& [replica, counted] : updates) {
      CAPTURE(counted.size());
      CHECK((counted.size() == 12 || counted.size() == 6));
      for (std::size_t i = 0; i < counted.size(); ++i)
        CHECK(counted[i] == static_cast<std::int64_t>(i) + (trainedBefore ? 10 : 1));
    }
  }
}

TEST_CASE("different speeds give the same bits however threads are delayed, and with listeners") {
  const auto trained = [](std::uint64_t delays, bool listens) {
    auto model = ruleToy();
    auto data = raggedData(23);
    RandomDelays sleep(delays, 400us);
    if (delays > 0) model.control().onStep = [&](const Batch&) { sleep(); };
    const AsynchronousOuter options{.frequency = 2,
                                    .rate = 0.7,
                                    .momentum = 0.5,
                                    .nesterov = true,
                                    .speeds = {1, 0.3, 1.7, 0.8, 2.5},
                                    .staleness = 2,
                                    .grace = 0.4};
    auto wrapper =
        wrapperOf(model, 5, options, 0, listens ? Listeners{std::make_shared<Listener>()} : Listeners{});
    wrapper.fit(data, 2);
    wrapper.fit(data);
    return stateBits(model);
  };
  const auto calm = trained(0, false);
  for (std::uint64_t seed = 0; seed <= 3; ++seed) CHECK(trained(seed, seed % 3 == 0) == calm);
}

TEST_CASE("a worker does not wait for a slow one that arrives later") {
  ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
  auto data = ToyIterator::ofValues({2, 6, 2, 6, 2, 6});
  Gate slow;
  model.control().onStep = [&](const Batch& batch) {
    if (batch.stamp.sequence == 1) slow.pass();  // worker 1's first
    if (batch.stamp.sequence == 4) slow.open();  // worker 0's fourth, after three arrivals
  };
  wrapperOf(model, 2, AsynchronousOuter{.speeds = {4, 1}}).fit(data);
  CHECK(model.control().steps().size() == 6);
}

TEST_CASE("synchronised batch normalisation is refused at the first step") {
  MultiLayerNetwork model({.updater = Sgd{.learningRate = 0.1},
                           .inputShape = {1},
                           .layers = {BatchNorm{.synchronised = true}, Output{.classes = 2}}});
  model.init();
  Batch batch;
  batch.features.push_back({"features", Tensor::zeros({2, 1})});
  batch.labels.push_back({"labels", Tensor::zeros({2}, DType::Int64)});
  ListIterator data({batch, batch, batch});
  auto wrapper = wrapperOf(model, 2, AsynchronousOuter{});
  CHECK(contains(failureOf(wrapper, data).cause, "synchronised batch normalisation"));
  wrapperOf(model, 1, AsynchronousOuter{}).fit(data);  // a single worker has no peers
}

TEST_CASE("for other numbers of workers speeds and arrivals per step are refused") {
  const std::string rule = "asynchronous outer: ";
  auto model = ruleToy();
  CHECK_REFUSED(wrapperOf(model, 2, AsynchronousOuter{.speeds = {1}}),
                rule + "speeds must name one for each of 2 workers, got 1");
  CHECK_REFUSED(wrapperOf(model, 2, AsynchronousOuter{.arrivalsPerStep = 3}),
                rule + "arrivalsPerStep must be at most the number of workers, 2, got 3");
  const auto delayed = AsynchronousOuter::delayedNesterov({1, 0.5});
  CHECK(delayed.make()->traits(2).arrivals->iterations == std::vector<std::int64_t>{50, 25});
}
