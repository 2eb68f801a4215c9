// AsynchronousOuter on the wall clock: properties that hold for any timing of the threads.
#include <numeric>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/strategies/asynchronous_outer.h"
#include "muster/parallel/training/arrival_order.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/failure.h"
#include "tests/support/log_lines.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

const AsynchronousOuter kWall{.frequency = 2, .rate = 0.9, .clock = ArrivalClock::Wall};

Listeners merged(RecordingListener::Hook hook = {}) {
  return {mergedListener(std::move(hook))};
}

/// The indices of the trained batches in order.
std::vector<std::int64_t> trainedOf(const ToyModel& model) {
  std::vector<std::int64_t> batches;
  for (const auto& step : model.control().steps()) batches.push_back(step.stamp.sequence);
  return batches;
}

std::vector<std::int64_t> firstNumbers(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Three workers on the wall clock.
struct Three {
  explicit Three(std::int64_t staleness)
      : order({.iterations = {1, 1, 1}, .speeds = {1, 1, 1}, .staleness = staleness, .wallClock = true}) {}
  /// @return who lands then, and who continues.
  std::string arrive(int worker) {
    order.arrive(worker);
    order.landArrived();
    std::string text;
    for (int w = 0; w < 3; ++w) {
      const Arrival& landing = order.arrivals()[static_cast<std::size_t>(w)];
      if (landing.arrives) text += fmt::format("+{} ", w);
      if (landing.resumes) text += fmt::format(">{} ", w);
      if (landing.resumes) order.depart(w, 0);
    }
    return text;
  }

  ArrivalOrder order;
};

}  // namespace

TEST_CASE("an arrival lands at once; if staleness is bounded, once a waiting worker may continue") {
  Three free(ArrivalPlan::kUnbounded);
  CHECK(free.arrive(1) == "+1 >1 ");
  CHECK(free.arrive(1) == "+1 >1 ");

  Three together(0);
  CHECK(together.arrive(2) == "");
  CHECK(together.arrive(0) == "");
  CHECK(together.arrive(1) == "+0 >0 +1 >1 +2 >2 ");
  together.order.landArrived();
  for (const Arrival& landing : together.order.arrivals()) CHECK_FALSE(landing.arrives);

  Three bounded(1);
  CHECK(bounded.arrive(0) == "+0 >0 ");
  CHECK(bounded.order.runs(0));
  CHECK(bounded.arrive(0) == "");  // the second time, while two workers never arrived
  CHECK_FALSE(bounded.order.runs(0));
  CHECK(bounded.arrive(1) == "+0 +1 >1 ");  // together with worker 0, which must wait for worker 2
  CHECK(bounded.arrive(2) == ">0 +2 >2 ");
}

TEST_CASE("every batch is trained and merged once, with and without merged listeners") {
  for (const int workers : {1, 2, 3, 5})
    for (const int devices : {0, 2})
      for (const bool listens : {false, true})
        for (const auto staleness : {std::optional<std::int64_t>(), std::optional<std::int64_t>(1)}) {
          INFO("workers ", workers, ", devices ", devices, ", listens ", listens);
          auto model = ruleToy();
          const auto sleep = std::make_shared<RandomDelays>(7, 300us);
          model.control().onStep = [sleep](const Batch&) { (*sleep)(); };
          const auto batches = ruleBatches(workers);
          const std::int64_t count = std::ssize(batches);
          std::int64_t examples = 0, mergedExamples = 0, epochs = 0;
          for (const auto& batch : batches) examples += std::ssize(batch.values) / kRuleWidth;
          const auto counting = merged([&](const RecordedCall& call, Trainer&) {
            if (call.event == "merge") mergedExamples += call.examples;
            if (call.event == "epochEnd") ++epochs;
          });
          ToyIterator data(batches, kRuleWidth);
          auto options = kWall;
          options.staleness = staleness;
          auto wrapper = wrapperOf(model, workers, options, devices, listens ? counting : Listeners{});
          for (std::int64_t fit = 1; fit <= 2; ++fit) {
            model.control().forgetSteps();
            wrapper.fit(data, 1);
            CHECK(trainedOf(model) == firstNumbers(count));
            CHECK(model.epoch() == fit);
            CHECK(model.iteration() == fit * ((count + workers - 1) / workers));
            CHECK(mergedExamples == (listens ? fit * examples : 0));
            CHECK(epochs == (listens ? fit : 0));
          }
          for (const float p : model.parameters()) CHECK(std::isfinite(p));
        }
}

TEST_CASE("a batch goes to the worker that asks: a fast one trains what a slow one leaves") {
  for (const bool listens : {false, true}) {
    CAPTURE(listens);
    ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
    auto data = ToyIterator::ofValues({2, 2, 2, 2, 2, 2});
    Gate slow;
    // Merged listeners wait for a step in progress only.
    const std::int64_t last = listens ? 1 : 5;
    model.control().onStep = [&](const Batch& batch) {
      if (batch.stamp.sequence == 0) slow.pass();
      if (batch.stamp.sequence == last) slow.open();
    };
    wrapperOf(model, 2, AsynchronousOuter{.clock = ArrivalClock::Wall}, 0, listens ? merged() : Listeners{})
        .fit(data);
    const auto steps = model.control().steps();
    REQUIRE(steps.size() == 6);
    if (!listens)
      for (std::size_t i = 1; i < 6; ++i) CHECK(steps[i].model != steps[0].model);
  }
}

TEST_CASE("one worker has the bits of the virtual clock, and at rate 1 those of the model alone") {
  AsynchronousOuter options{.frequency = 3, .rate = 0.7, .momentum = 0.5, .nesterov = true};
  const auto virtually = trainRule(options, 1);
  options.clock = ArrivalClock::Wall;
  for (const Listeners& listeners : {Listeners{}, merged()})
    CHECK(trainRule(options, 1, 0, listeners) == virtually);
  auto alone = ruleToy();
  ToyIterator data(ruleBatches(1), kRuleWidth);
  alone.fit(data, kRuleEpochs);
  CHECK(trainRule(AsynchronousOuter{.frequency = 3, .clock = ArrivalClock::Wall}, 1) == stateBits(alone));
}

TEST_CASE("with staleness 0 on equal batches the wall clock gives the bits of OuterAveraging") {
  for (const int workers : {2, 3})
    for (const bool listens : {false, true}) {
      CAPTURE(workers);
      const std::vector<ToyBatch> batches(static_cast<std::size_t>(4 * workers),
                                          randomBatches(3, 1, 4, kRuleWidth).front());
      const auto trained = [&](auto strategy, const Listeners& listeners) {
        auto model = ruleToy();
        ToyIterator data(batches, kRuleWidth);
        wrapperOf(model, workers, strategy, 0, listeners).fit(data, 2);
        return stateBits(model);
      };
      const OuterAveraging outer{.rate = 0.7, .momentum = 0.5, .updaterState = UpdaterState::Keep};
      const AsynchronousOuter wall{.rate = 0.7, .momentum = 0.5, .clock = ArrivalClock::Wall, .staleness = 0};
      CHECK(trained(wall, listens ? merged() : Listeners{}) == trained(outer, {}));
    }
}

TEST_CASE("a checkpoint within an epoch is refused with one warning, and made at the epoch's end") {
  const LogLines lines;
  std::ptrdiff_t within = 0, atEnd = 0;
  const auto checkpoints = merged([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event == "epochEnd") atEnd += trainer.trainingState().empty() ? 0 : 1;
    if (call.event != "merge" || trainer.model().epoch() != call.epoch) return;
    CHECK(trainer.trainingState().empty());
    ++within;
  });
  auto model = ruleToy();
  ToyIterator data(randomBatches(5, 24, 4, kRuleWidth), kRuleWidth);
  wrapperOf(model, 3, kWall, 0, checkpoints).fit(data, 2);
  CHECK(within > 2);
  CHECK(atEnd == 2);
  const auto warnings = std::ranges::count_if(lines.all(), [](const std::string& line) {
    return line.starts_with("warning: there is no checkpoint of the training after iteration") &&
           line.ends_with(": on the wall clock only the end of an epoch can be resumed");
  });
  CHECK(warnings == 1);
}

TEST_CASE("a failure ends the training, whichever worker waits, and the wrapper can train again") {
  for (const bool listens : {false, true})
    for (const std::int64_t failing : {0, 3, 11}) {
      CAPTURE(failing);
      auto model = ruleToy();
      ToyIterator data(randomBatches(5, 12, 4, kRuleWidth), kRuleWidth);
      model.control().onStep = [&](const Batch& batch) {
        if (batch.stamp.sequence == failing) boom();
      };
      auto options = kWall;
      options.staleness = 0;  // most arrivals wait
      auto wrapper = wrapperOf(model, 3, options, 0, listens ? merged() : Listeners{});
      const Failure failure = failureOf(wrapper, data, 2);
      CHECK_CONTAINS(failure.cause, "boom");
      CHECK(failure.worker >= 0);
      CHECK(model.epoch() == 0);
      model.control().onStep = {};
      model.control().forgetSteps();
      wrapper.fit(data);
      CHECK(trainedOf(model) == firstNumbers(12));
      CHECK(model.epoch() == 1);
    }
}

TEST_CASE("a merged listener that stops the training ends it") {
  auto model = ruleToy();
  ToyIterator data(randomBatches(5, 12, 4, kRuleWidth), kRuleWidth);
  auto stopping = wrapperOf(model, 3, kWall, 0, merged([&](const RecordedCall& call, Trainer& trainer) {
                              if (call.event == "merge") trainer.stopFit();
                            }));
  stopping.fit(data, 5);
  CHECK(model.epoch() == 0);
}

TEST_CASE("a user-defined rule with arrivals may use whole replicas") {
  struct Own {
    struct Rule final : Strategy {
      std::string describe() const override { return "own"; }
      StrategyTraits traits(int workers) const override {
        const auto count = static_cast<std::size_t>(workers);
        return {.arrivals = ArrivalPlan{.iterations = std::vector<std::int64_t>(count, 1),
                                        .speeds = std::vector<double>(count, 1)}};
      }
      RoundPlan plan(const TrainingProgress&) override { return {}; }
      void land(int, const Round& round, MergeOps& ops) override {
        const SharedBlock& parameters = ops.block(BlockKind::Parameters);
        const auto elements = parameters.mergedCopy().elements();
        ops.eachReplica(elements, [&](const Share& share) {  // halves them in place
          for (const std::size_t w : share.workers)
            if (round.weights[w] > 0)
              linearCombination(std::array{Term{0.5, parameters.replicas[w]}}, parameters.replicas[w],
                                share.slice.begin, share.slice.end, share.context);
        });
        if (std::ranges::any_of(round.weights, [](double weight) { return weight > 0; }))
          ops.mean(parameters.replicas, round.weights, parameters.mergedCopies, Fragment::whole(elements),
                   0.5);
      }
    };
    void validate() const {}
    std::unique_ptr<Strategy> make() const { return std::make_unique<Rule>(); }
  };
  CHECK(trainRule(Own{}, 3, 0, merged()) == trainRule(Own{}, 3));
}
