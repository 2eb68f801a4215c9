#include "muster/parallel/strategies/asynchronous_outer.h"

#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/parallel/strategies/reference.h"
#include "tests/support/failure.h"
#include "tests/support/list_iterator.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/rounding.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

ToyIterator raggedData(int batches) {
  return ToyIterator(randomBatches(5, batches, 4, kRuleWidth, /*ragged=*/true), kRuleWidth);
}

struct Landed {
  std::int64_t iteration, batches, examples;
  double arrivals, staleness;
  bool operator==(const Landed&) const = default;
};

/// Records the merges, and the user's first parameter after each.
std::shared_ptr<Listener> recordMerges(std::vector<Landed>& merges, std::vector<float>* models = nullptr) {
  return onMerge([&merges, models](const MergeEvent& e) {
    REQUIRE(e.values.size() == 3);
    CHECK(e.values[2].name == "period");
    merges.push_back({e.iteration, e.batchesInEpoch, e.examples, e.values[0].value, e.values[1].value});
    if (models) models->push_back(static_cast<ToyModel&>(e.trainer.model()).parameters()[0]);
  });
}

std::string refusal(const AsynchronousOuter& options) {
  return thrown<InvalidArgument>([&] { options.validate(); });
}

}  // namespace

TEST_CASE("arrivals equal those worked out by hand: one worker of double speed, half of each move applied") {
  // p = 0, learning rate 0.5, values 2, 6, 2, 6; worker 0 gets the first, third and fourth.
  //   time 0.5: worker 0 is at 1: W = 0 + (1 - 0) / 2 = 0.5.
  //   time 1: worker 0 is at 1.25: W = 0.5 + 0.75 / 2 = 0.875. Worker 1 is at 3, from 0, and W has changed
  //   twice:
  //           W = 0.875 + 3 / 2 = 2.375.
  //   time 1.5: worker 0, from 0.875, is at 3.4375, and W has changed once: W = 2.375 + 2.5625 / 2 = 3.65625.
  //   At the end of the epoch nothing arrives, and worker 1 takes W.
  for (const int devices : {0, 1, 2})
    for (const bool listens : {false, true}) {
      CAPTURE(devices);
      ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
      auto data = ToyIterator::ofValues({2, 6, 2, 6});
      std::vector<Landed> merges;
      std::vector<float> models;
      wrapperOf(model, 2, AsynchronousOuter{.speeds = {2, 1}}, devices,
                listens ? Listeners{recordMerges(merges, &models)} : Listeners{})
          .fit(data);
      CHECK(model.parameters()[0] == 3.65625f);
      CHECK(model.iteration() == 2);
      if (!listens) continue;
      CHECK(merges ==
            std::vector<Landed>{
                {1, 1, 1, 1, 0}, {2, 2, 1, 1, 0}, {2, 3, 1, 1, 2}, {2, 4, 1, 1, 1}, {2, 4, 0, 0, 0}});
      CHECK(models == std::vector<float>{0.5f, 0.875f, 2.375f, 3.65625f, 3.65625f});
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
  std::vector<Landed> merges;
  wrapperOf(model, 2, AsynchronousOuter{.speeds = {4, 1}, .staleness = 1}, 0, {recordMerges(merges)})
      .fit(data);
  CHECK(model.parameters()[0] == 5.375f);
  REQUIRE(merges.size() >= 3);
  for (std::size_t m = 0; m < 3; ++m) CHECK(merges[m].arrivals == 1);
}

TEST_CASE("N arrivals of equal moves equal one step of OuterAveraging, to rounding") {
  // In each of three epochs, all workers start from the same point and train on the same batch.
  for (const int workers : {2, 3, 4}) {
    CAPTURE(workers);
    ToyIterator data(
        std::vector<ToyBatch>(static_cast<std::size_t>(workers), randomBatches(7, 1, 4, kRuleWidth).front()),
        kRuleWidth);
    const auto parameters = [&](auto strategy) {
      ToyModel model({.size = kRuleWidth, .training = {.updater = Sgd{.learningRate = 0.5}}});
      wrapperOf(model, workers, strategy).fit(data, 3);
      return model.parameters();
    };
    const auto once = parameters(OuterAveraging{.rate = 0.7, .momentum = 0.9, .nesterov = true});
    const auto each = parameters(AsynchronousOuter{.rate = 0.7, .momentum = 0.9, .nesterov = true});
    // Roundings of numbers up to 2 per epoch: each arrival rounds W and A once; the momentum rounds D and the
    // look-ahead; an inner step rounds twice. The next epoch multiplies an epoch's error by at most 1 + 0.9.
    const double bound = roundings((2 * workers + 6) * (1 + 1.9 + 1.9 * 1.9), 2);
    for (std::size_t i = 0; i < once.size(); ++i) {
      CHECK(std::abs(once[i]) <= 2);
      CHECK(std::abs(each[i] - once[i]) <= bound);
    }
  }
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
    std::vector<Landed> merges;
    wrapperOf(model, 2, AsynchronousOuter{.frequency = period, .grace = kForever}, 0, {recordMerges(merges)})
        .fit(data);
    std::vector<std::int64_t> at;
    for (const auto& merge : merges) at.push_back(merge.iteration);
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
    std::vector<Landed> merges;
    auto wrapper = wrapperOf(model, 5, options, 0, listens ? Listeners{recordMerges(merges)} : Listeners{});
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

TEST_CASE("no batch is lost if a worker gets none, or too few to arrive") {
  for (const int batches : {1, 2, 5, 9}) {
    CAPTURE(batches);
    auto model = ruleToy();
    auto data = raggedData(batches);
    std::vector<Landed> merges;
    wrapperOf(model, 4, AsynchronousOuter{.frequency = 3, .speeds = {1, 0.9, 0.01, 2}}, 0,
              {recordMerges(merges)})
        .fit(data, 2);
    CHECK(model.control().steps().size() == static_cast<std::size_t>(2 * batches));
    CHECK(merges.back().batches == batches);
    CHECK(model.iteration() == 2 * ((batches + 3) / 4));
  }
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

TEST_CASE("against NumPy: AsynchronousOuter") {
  if (!numpyFound()) return;  // a visible skip
  const auto check = [](const std::string& numpy, const AsynchronousOuter& options) {
    checkAgainstNumpy("asynchronous_outer", numpy + " speeds=1,0.5,2,0.75",
                      [&](ParallelWrapper::Builder& builder, int workers) {
                        auto own = options;
                        own.speeds = {1, 0.5, 2, 0.75};
                        own.speeds.resize(static_cast<std::size_t>(workers));
                        builder.strategy(own);
                      });
  };
  check("frequency=2 rate=0.9", {.frequency = 2, .rate = 0.9});
  check("frequency=4 rate=0.7 fewer=1 staleness=1",
        {.frequency = 4, .rate = 0.7, .fewerIterationsIfSlow = true, .staleness = 1});
  check("frequency=2 rate=0.5 momentum=0.5", {.frequency = 2, .rate = 0.5, .momentum = 0.5});
  check("frequency=1 rate=0.7 momentum=0.5 nesterov=1 grace=0.75",
        {.frequency = 1, .rate = 0.7, .momentum = 0.5, .nesterov = true, .grace = 0.75});
  check("frequency=2 rate=0.25 momentum=0.5 nesterov=1 arrivals=2 staleness=0", {.frequency = 2,
                                                                                 .rate = 0.25,
                                                                                 .momentum = 0.5,
                                                                                 .nesterov = true,
                                                                                 .arrivalsPerStep = 2,
                                                                                 .staleness = 0});
  check("frequency=2 rate=0.25 momentum=0.5 nesterov=1 arrivals=1",
        {.frequency = 2, .rate = 0.25, .momentum = 0.5, .nesterov = true, .arrivalsPerStep = 1});
  for (const auto& [name, codec] : codecsInNumpy())
    check("frequency=2 rate=0.5 momentum=0.5 codec=" + name,
          {.frequency = 2, .rate = 0.5, .momentum = 0.5, .codec = codec});
}

TEST_CASE("options out of range are refused by name") {
  const std::string rule = "asynchronous outer: ";
  CHECK(refusal({.frequency = 0}) == rule + "every must be between 1 and 1099511627776, got 0");
  CHECK(refusal({.rate = 0}) == rule + "rate must be above 0, got 0");
  CHECK(refusal({.momentum = 1}) == rule + "momentum must be in [0, 1), got 1");
  CHECK(refusal({.arrivalsPerStep = -1}) == rule + "arrivalsPerStep cannot be negative, got -1");
  CHECK(refusal({.speeds = {1, 0}}) == rule + "speeds must be between 1e-06 and 1000000, got 0");
  CHECK(refusal({.staleness = -1}) == rule + "staleness cannot be negative, got -1");
  CHECK(refusal({.grace = std::nan("")}) == rule + "grace must be at least 0, got nan");
  CHECK(refusal({.updaterState = UpdaterState::Average}) ==
        rule + "updaterState cannot be Average, since workers are merged one by one; use Keep or Reset");
  CHECK(refusal({.frequency = Period::adaComm(4)}) ==
        rule + "period cannot be AdaComm, since batches are dealt before there are scores to adapt to");
  CHECK(refusal({.clock = ArrivalClock::Wall, .grace = 0.5}) ==
        rule + "grace is virtual time, so on the wall clock it must be 0, got 0.5");
  CHECK(refusal({.clock = ArrivalClock::Wall, .speeds = {1, 2}}) ==
        rule + "speeds only count for fewerIterationsIfSlow on the wall clock; give that, too, or no speeds");
  CHECK(refusal({.codec = TopKCodec{.share = 2}}) == rule + "codec: share must be in (0, 1], got 2");
  auto model = ruleToy();
  CHECK_REFUSED(wrapperOf(model, 2, AsynchronousOuter{.speeds = {1}}),
                rule + "speeds must name one for each of 2 workers, got 1");
  CHECK_REFUSED(wrapperOf(model, 2, AsynchronousOuter{.arrivalsPerStep = 3}),
                rule + "arrivalsPerStep must be at most the number of workers, 2, got 3");
  const auto delayed = AsynchronousOuter::delayedNesterov({1, 0.5});
  CHECK(delayed.make()->describe() ==
        "asynchronous outer steps, an arrival every 50 iterations (rate 0.7, Nesterov momentum 0.9)");
  CHECK(delayed.make()->traits(2).arrivals->iterations == std::vector<std::int64_t>{50, 25});
}
