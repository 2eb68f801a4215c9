// No averaging rule merges a non-finite number, wherever it comes from; afterwards the model holds the last
// merge.

#include "tests/parallel/for_every_rule.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/failure.h"
#include "tests/support/on_merge.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kFiniteWidth = 37;
constexpr int kBatches = 11;
constexpr std::int64_t kBad = kBatches - 2;  // in the second epoch, before its end

ToyModel finiteToy(bool statistics = true) {
  return ToyModel({.size = kFiniteWidth,
                   .training = {.updater = Nesterovs{.learningRate = 0.05, .momentum = 0.5}, .l2 = 0.01},
                   .statistics = statistics,
                   .split = true});
}

std::vector<ToyBatch> batches() {
  return randomBatches(5, kBatches, 1, kFiniteWidth);
}

/// The bits of a model, including the state of a strategy.
std::vector<std::byte> bitsOf(ToyModel& model) {
  auto bits = model.allBits();
  for (const NamedValues& saved : model.strategyState()) {
    const auto* const begin = static_cast<const std::byte*>(saved.values.raw());
    bits.insert(bits.end(), begin, begin + saved.values.bytes());
  }
  return bits;
}

/// Checks that the model has the same bits as if the bad batch's step throws instead.
void checkAsAfterThrow(ToyModel& failed, const NamedRule& rule, int workers) {
  for (const float p : failed.parameters()) CHECK(std::isfinite(p));
  // Other workers may land once more before they notice the failure.
  if (workers > 1 && rule.options.make()->traits(workers).arrivals) return;
  auto model = finiteToy();
  ToyIterator data(batches(), kFiniteWidth);
  model.control().onStep = [](const Batch& batch) {
    if (batch.stamp.epoch == 1 && batch.stamp.sequence == kBad) boom();
  };
  auto wrapper = wrapperOf(model, workers, rule.options);
  CHECK(contains(failureOf(wrapper, data, 3).cause, "boom"));
  CHECK(bitsOf(failed) == bitsOf(model));
}

/// An iterator with different data in the second epoch.
struct TwoEpochs final : DataSetIterator {
  TwoEpochs(std::vector<ToyBatch> first, std::vector<ToyBatch> second)
      : epochs{ToyIterator(std::move(first), kFiniteWidth), ToyIterator(std::move(second), kFiniteWidth)} {}
  void reset(std::int64_t e) override {
    at = e == 1 ? 1 : 0;
    epochs[at].reset(e);
  }
  bool next(Batch& batch) override { return epochs[at].next(batch); }
  std::array<ToyIterator, 2> epochs;
  std::size_t at = 0;
};

/// Sets feature 3 of the last `count` batches, up to the bad one, to a value that the score does not reveal.
Failure failureWith(float feature, ToyModel& model, const NamedRule& rule, int workers, int count = 1) {
  auto bad = batches();
  for (std::int64_t b = kBad; b > kBad - count; --b) bad[static_cast<std::size_t>(b)].values[3] = feature;
  TwoEpochs data(batches(), bad);
  model.control().reportedScore = [](const Batch&, double score) { return std::isfinite(score) ? score : 1; };
  auto wrapper = wrapperOf(model, workers, rule.options);
  return failureOf(wrapper, data, 3);
}

}  // namespace

TEST_CASE("every rule: a feature that is not finite reaches no merge, and is named") {
  forEveryRule({1, 2, 3}, [](const NamedRule& rule, int w) {
    for (const float feature : {kInfinity, kNan}) {
      auto model = finiteToy();
      const Failure failure = failureWith(feature, model, rule, w);
      CAPTURE(failure.text);
      CHECK(contains(failure.text, fmt::format("worker {} on cpu failed in batch {} of epoch 2: x holds {}: "
                                               "example 0 of the batch (example {} of the epoch), column 3",
                                               kBad % w, kBad + 1, feature, kBad)));
      CHECK(failure.worker == kBad % w);
      checkAsAfterThrow(model, rule, w);
    }
  });
}

TEST_CASE("every rule: an update that would overflow reaches no merge") {
  // The gradient is finite; with momentum the step is not. A mean of gradients would be small enough.
  forEveryRule({1, 2, 3}, [](const NamedRule& rule, int w) {
    if (rule.options.make()->traits(w).localWork == LocalWork::Gradient && w > 1) return;
    auto model = finiteToy();
    const Failure failure = failureWith(-3e38f, model, rule, w);
    CAPTURE(failure.text);
    CHECK(failure.worker == kBad % w);
    CHECK(contains(failure.text, fmt::format("in batch {} of epoch 2: an update would leave numbers that are "
                                             "not finite; the largest gradient or parameter is 3e+38, in p",
                                             kBad + 1)));
    if (rule.options.make()->traits(w).localWork == LocalWork::Step) checkAsAfterThrow(model, rule, w);
  });
}

TEST_CASE("all replicas refuse merged gradients whose update would overflow, and stay as they are") {
  for (const int w : {1, 2, 5}) {
    CAPTURE(w);
    const NamedRule rule{"synchronous gradients", SynchronousGradients{}};
    auto model = finiteToy(/*statistics=*/false), failing = finiteToy(/*statistics=*/false);
    // Batches kBad - w + 1 to kBad belong to one iteration.
    REQUIRE((kBad + 1) % w == 0);
    const Failure failure = failureWith(-3e38f, model, rule, w, w);
    CHECK(contains(failure.text, "an update would leave numbers that are not finite"));
    failing.control().onStep = [](const Batch& batch) {
      if (batch.stamp.epoch == 1 && batch.stamp.sequence == kBad) boom();
    };
    ToyIterator data(batches(), kFiniteWidth);
    auto wrapper = wrapperOf(failing, w, rule.options);
    failureOf(wrapper, data, 3);
    CHECK(model.allBits() == failing.allBits());
    CHECK(model.iteration() == (kBatches + w - 1) / w + (kBad + 1) / w - 1);
  }
}

namespace {

/// Trains two replicas until a merge overflows, and checks that the model holds the one before.
void checkLastMerge(const NamedRule& rule, const std::vector<ToyBatch>& batches, int devices) {
  INFO("name ", rule.name, ", devices ", devices);
  const auto fresh = [] {
    return ToyModel({.size = kFiniteWidth, .training = {.updater = Sgd{.learningRate = 0.5}}});
  };
  auto watched = fresh(), model = fresh();
  std::vector<std::byte> last = watched.allBits();
  int merges = 0;
  const auto listener = onMerge([&](const MergeEvent& event) {
    last = dynamic_cast<ToyModel&>(event.trainer.model()).allBits();
    ++merges;
  });
  ToyIterator first(batches, kFiniteWidth), second(batches, kFiniteWidth);
  auto watchedWrapper = wrapperOf(watched, rule.workers(2), rule.options, devices, {listener}),
       wrapper = wrapperOf(model, rule.workers(2), rule.options, devices);
  CHECK(contains(failureOf(watchedWrapper, first).text, "not"));
  CHECK(merges >= 1);
  const Failure failure = failureOf(wrapper, second);
  CAPTURE(failure.text);
  CHECK(contains(failure.text, "a merge would not leave finite numbers: element "));
  CHECK(model.allBits() == last);
  for (const float p : model.parameters()) CHECK(std::isfinite(p));
}

}  // namespace

TEST_CASE("if a merge would overflow, the model holds the one before") {
  // A step moves from 0 halfway to 1e32, and the merge a million times as far; the second merge overflows
  // float32.
  const std::vector<ToyBatch> batches(60, {std::vector<float>(kFiniteWidth, 1e32f)});
  const std::vector<NamedRule> rules{
      {"outer", OuterAveraging{.frequency = 1, .rate = 1e6}},
      {"momentum", OuterAveraging{.frequency = 1, .rate = 1e6, .momentum = 0.9}},
      {"nesterov", OuterAveraging{.frequency = 1, .rate = 1e6, .momentum = 0.1, .nesterov = true}},
      {"int8", OuterAveraging{.frequency = 1, .rate = 1e6, .codec = Int8Codec{}}},
      {"overlapped", OverlappedAveraging{.frequency = 2, .delay = 1, .rate = 1e6}},
      {"streaming", StreamingOuter{.frequency = 2, .fragments = 1, .delay = 0, .rate = 1e6}},
      {"own", TwoHalves{.pull = 1e6}},
      {"asynchronous", AsynchronousOuter{.frequency = 1, .rate = 1e6}},
      {"asynchronous momentum", AsynchronousOuter{.frequency = 1, .rate = 1e6, .momentum = 0.9}},
  };
  // On devices operations are not checked, but here these are the CPU, whose operations are.
  for (const auto& rule : rules)
    for (const int devices : {0, 1, 2}) checkLastMerge(rule, batches, devices);
}

TEST_CASE("if an encoded move would overflow, the model holds the merge before") {
  // In the second round the last element goes from above 2e38 to below -2e38, a move too large for float32.
  // The worker that merges the first elements does not notice.
  std::vector<ToyBatch> batches;
  for (const float target : {3e38f, 3e38f, 3e38f, 3e38f, 0.0f, -1.5e38f, -3e38f, -3e38f})
    for (int worker = 0; worker < 2; ++worker) {
      std::vector<float> values(kFiniteWidth, 1);
      values.back() = target;
      batches.push_back({values});
    }
  for (const int devices : {0, 2}) {
    checkLastMerge({"elastic", ElasticAveraging{.frequency = 4, .codec = Bf16Codec{}}}, batches, devices);
    checkLastMerge(
        {"sma",
         ElasticAveraging{
             .frequency = 4, .centreRate = 1, .elasticity = 0.5, .centreFirst = true, .codec = Bf16Codec{}}},
        batches, devices);
  }
}

namespace {

/// Averages, and after one iteration writes an infinite number into the merged copies itself.
struct WritesInfinity {
  struct Rule final : Strategy {
    explicit Rule(const WritesInfinity& options) : at(options.iteration), throws(options.mayThrow) {}
    std::string describe() const override { return "averaging, and infinity"; }
    StrategyTraits traits(int) const override { return {.mayThrow = throws}; }
    RoundPlan plan(const TrainingProgress&) override { return {}; }
    void land(int, const Round& round, MergeOps& ops) override {
      ops.mergeState(round.weights);
      if (round.iteration != at) return;
      const SharedBlock& parameters = ops.block(BlockKind::Parameters);
      ops.eachShare(kFiniteWidth, [&](const Share& share) {
        for (const std::size_t w : share.workers) parameters.mergedCopies[w].data<float>()[3] = kInfinity;
      });
    }
    const std::int64_t at;
    const bool throws;
  };
  std::int64_t iteration = 1;
  bool mayThrow = true;

  void validate() const {}
  std::unique_ptr<Strategy> make() const { return std::make_unique<Rule>(*this); }
};

}  // namespace

TEST_CASE("merges on devices are checked later, but the model takes finite numbers only") {
  // Without the infinite number, the model after each iteration.
  std::vector<std::vector<std::byte>> after;
  auto watched = finiteToy();
  watched.state();
  after.push_back(watched.allBits());
  const auto watch = onMerge([&](const MergeEvent& event) {
    after.push_back(dynamic_cast<ToyModel&>(event.trainer.model()).allBits());
  });
  ToyIterator data(batches(), kFiniteWidth);
  wrapperOf(watched, 2, WritesInfinity{.iteration = -1}, 0, {watch}).fit(data);
  constexpr std::int64_t kLast = (kBatches + 1) / 2;
  REQUIRE(after.size() == kLast + 1);
  for (const int devices : {1, 2})
    for (const bool mayThrow : {true, false})
      for (const bool listens : {false, true})
        for (const std::int64_t iteration : {std::int64_t{1}, std::int64_t{3}, kLast}) {
          INFO("devices ", devices, ", mayThrow ", mayThrow, ", listens ", listens, ", iteration ",
               iteration);
          auto model = finiteToy();
          model.state();
          const auto reader = onMerge([](const MergeEvent& event) { event.trainer.model(); });
          const WritesInfinity rule{.iteration = iteration, .mayThrow = mayThrow};
          auto wrapper = wrapperOf(model, 2, rule, devices, listens ? Listeners{reader} : Listeners{});
          const Failure failure = failureOf(wrapper, data);
          CAPTURE(failure.text);
          // The listener's call finds it, or else the end of the next round.
          CHECK(contains(failure.text,
                         listens ? "after the last merge the parameters of p are not finite: element 3 is inf"
                                 : "worker 0 on cpu failed at the merge after batch"));
          if (!listens)
            CHECK(contains(failure.text,
                           "the last merge has written numbers that are not finite, in parameters"));
          CHECK(model.allBits() == after.at(static_cast<std::size_t>(iteration - 1)));
          CHECK(model.iteration() == iteration - 1);
        }
}

TEST_CASE("fit() ends before an update that would overflow, and the model holds the last finite step") {
  auto all = batches();
  const std::vector<ToyBatch> before(all.begin(), all.begin() + 6);
  all[6].values[3] = -3e38f;
  auto model = finiteToy(), expected = finiteToy();
  model.control().reportedScore = [](const Batch&, double) { return 1; };
  ToyIterator data(all, kFiniteWidth), few(before, kFiniteWidth);
  CHECK_CONTAINS(thrown<NonFiniteScore>([&] { model.fit(data); }),
                 "batch 7 of epoch 1: an update would leave numbers that are not finite");
  expected.fit(few);
  CHECK(model.parameters() == expected.parameters());
  CHECK(model.updaterState("velocity") == expected.updaterState("velocity"));
}
