// Memory runs out at the k-th allocation, for all k: each call fails or succeeds, no thread is left waiting,
// and the wrapper can be used again with the same bits as without a shortage.

#include <barrier>

#include "muster/core/eval/evaluation.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/outer_averaging.h"
#include "tests/parallel/data_parallel.h"
#include "tests/parallel/merged_states.h"
#include "tests/parallel/on_nodes.h"
#include "tests/support/allocations.h"
#include "tests/support/hang_watch.h"
#include "tests/support/labelled_toy.h"
#include "tests/support/sanitizers.h"
#include "tests/support/threads_joined.h"
#include "tests/support/whole.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

using Lasting = FailingAllocations::Lasting;
using Bits = std::string;

constexpr std::int64_t kSize = 5;

ToyOptions toy() {
  return {.size = kSize, .training = {.updater = Nesterovs{.learningRate = 0.1}}, .statistics = true};
}

Bits bitsOf(ToyModel& model) {
  const auto bytes = model.allBits();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

LabelledToy examples() {
  return LabelledToy(randomBatches(5, 7, 3, kSize, true), kSize, kSize);
}

/// Every so many allocations fail. Threads start slowly under ThreadSanitizer.
long stride() {
  return kThreadSanitizer ? 7 : whole() ? 1 : 5;
}
constexpr auto kLongest = kSanitized ? 20s : 2s;  // of a trial

/// Calls `trial(nth, lasting)` for increasing nth until it ends without a shortage. A trial, of milliseconds,
/// must end within kLongest. On a loaded machine it may wait for a core, so a slow one is tried again: a call
/// that waits for something would wait again. One that hangs is named.
/// @param trial  can be repeated. @return whether memory ran out.
template <typename Trial>
void forEachAllocation(Trial trial, long apart = stride()) {
  for (const auto lasting : {Lasting::No, Lasting::Yes}) {
    HangWatch watch(lasting == Lasting::No ? "one allocation fails" : "all allocations from one on fail");
    using Clock = std::chrono::steady_clock;
    long nth = 0;
    Clock::duration longest{};
    const auto ranOut = [&] {
      for (int again = 3;; --again) {
        watch.begin(nth);
        const auto begun = Clock::now();
        const bool any = trial(nth, lasting);
        const auto took = Clock::now() - begun;
        if (took >= kLongest && again > 0) continue;
        CHECK(took < kLongest);
        longest = std::max(longest, took);
        return any;
      }
    };
    while (ranOut()) {
      nth += apart;
      REQUIRE(nth < 20'000);
    }
    MESSAGE(nth << " allocations, the longest trial "
                << std::chrono::duration_cast<std::chrono::milliseconds>(longest).count() << " ms");
    CHECK(nth > 0);
  }
}

/// @return whether `call` threw.
template <typename Call>
bool fails(Call call) {
  try {
    call();
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

/// As `fails`, for calls whose errors always name them.
template <typename Call>
bool failsByName(Call call) {
  return fails([&] {
    try {
      call();
    } catch (const std::bad_alloc&) {
      CHECK(false);
      throw;
    }
  });
}

/// @return whether a call whose errors name it failed, and whether memory ran out.
template <typename Call>
std::pair<bool, bool> withShortage(long nth, Lasting lasting, Call call) {
  const FailingAllocations shortage(nth, lasting);
  const bool failed = failsByName(call);
  return {failed, shortage.any()};
}

struct Rule {
  const char *name, *options;
  std::int64_t round =
      2;  ///< the longest round, in iterations; 0: the model may hold an earlier merge than the last
  int devices = 0;  ///< pretended devices
};

void checkFits(const Rule& rule) {
  INFO("name ", rule.name, ", options ", rule.options);
  const auto build = [&](ToyModel& model, Listeners listeners) {
    auto builder = ParallelWrapper::Builder(model);
    builder.workers(2).pinThreads(false).prefetchBuffer(1).listeners(std::move(listeners));
    builder.internals({.pretendedDevices = rule.devices}).strategy(strategyNamed(rule.name, rule.options, 2));
    return builder.build();
  };
  ToyModel fresh(toy());
  fresh.state();
  std::set<std::string> merged;
  Bits expected;
  {
    ToyModel model(toy());
    auto data = examples();
    std::vector<std::set<std::string>> after;
    build(model, {recordStates(model, after)}).fit(data, 2);
    expected = bitsOf(model);
    for (const auto& states : after) merged.insert(states.begin(), states.end());
  }
  const ThreadsJoined joined;
  forEachAllocation([&](long nth, Lasting lasting) {
    CAPTURE(nth);
    ToyModel model(toy());
    model.state();
    auto data = examples();
    auto wrapper = build(model, {});
    const auto [failed, any] = withShortage(nth, lasting, [&] { wrapper.fit(data, 2); });
    if (!failed) CHECK(bitsOf(model) == expected);
    if (failed) {
      CHECK(merged.contains(mergedOf(model)));
      std::int64_t begun = 0;
      for (const auto& step : model.control().steps()) begun = std::max(begun, step.stamp.iteration);
      // Before a round's first step the round before was merged.
      if (rule.round > 0) CHECK(model.iteration() >= begun / rule.round * rule.round);
      model.copyStateFrom(fresh);
      wrapper.fit(data, 2);
      CHECK(bitsOf(model) == expected);
    }
    return any;
  });
}

}  // namespace

TEST_CASE("fit() runs out of memory, under every rule") {
  for (const Rule& rule : {Rule{"averaging", "every=2"},
                           {"averaging", "every=2,updaterState=keep"},
                           {"averaging", "every=2", 0, /*devices=*/2},
                           {"synchronous", "", 1},
                           // Adapted thresholds outlive a fit().
                           {"shared", "threshold=fixed,threshold.threshold=0.01", 1},
                           {"overlapped", "every=2,delay=1,codec=int8"},
                           {"streaming", "every=2,fragments=1,delay=1,codec=power-sgd"},
                           {"asynchronous", "every=2,speeds=1,0.5", 0},
                           {"gossip", "graph=ring", 1},
                           {"hierarchical", "levels=1:1,2:all", 1},
                           {"easgd", "every=2"},
                           {"adasum", "every=2"}})
    checkFits(rule);
}

namespace {

/// @param listeners  of each node.
/// @param apart  a prime, by which fewer allocations fail: links allocate at other times in each run.
void checkNodes(const AnyStrategy& rule, long apart, const Listeners& listeners = {}) {
  Bits expected;
  const auto trial = [&](long nth, Lasting lasting) {
    CAPTURE(nth);
    bool any = false;
    std::optional<FailingAllocations> shortage;
    std::barrier begin(2, [&]() noexcept { shortage.emplace(nth, lasting); });
    std::barrier end(2, [&]() noexcept {
      any = shortage->any();
      shortage.reset();
    });
    VirtualNetwork network(2);
    std::array<Bits, 2> reached;
    const auto problems = onNodes(network, 5s, [&](const Nodes& here) {
      ToyModel model(toy());
      auto data = examples();
      auto wrapper = builderOf(model, 1, rule).nodes(here).listeners(listeners).build();
      begin.arrive_and_wait();
      const bool failed = failsByName([&] { wrapper.fit(data); });
      end.arrive_and_wait();
      if (!failed) reached[static_cast<std::size_t>(here.node())] = bitsOf(model);
    });
    CHECK(problems == std::vector<std::string>(2));
    for (const Bits& bits : reached) {
      if (expected.empty()) expected = bits;
      if (!bits.empty()) CHECK(bits == expected);
    }
    return any;
  };
  REQUIRE_FALSE(trial(1'000'000, Lasting::No));
  REQUIRE_FALSE(expected.empty());
  const ThreadsJoined joined;
  forEachAllocation(trial, apart * stride());
}

}  // namespace

TEST_CASE("fit() runs out of memory: two nodes, whose links have allocations of their own") {
  checkNodes(OuterAveraging{.frequency = 2}, 13);
}

TEST_CASE("fit() runs out of memory: two nodes, one of which collects checkpoints") {
  const auto checkpoints = mergedListener([](const RecordedCall& call, Trainer& trainer) {
    if (call.event == "merge" || call.event == "fitEnd") trainer.trainingState();
  });
  checkNodes(OverlappedAveraging{.frequency = 2, .updaterState = UpdaterState::Keep}, 53, {checkpoints});
}

TEST_CASE("evaluate() runs out of memory: replicas keep their own state") {
  ToyModel model(toy()), fresh(toy());
  fresh.state();
  auto data = examples();
  auto wrapper = toyWrapper(model, 2).averageUpdaters(false).build();
  const auto train = [&](const std::function<void()>& between) {
    model.copyStateFrom(fresh);
    wrapper.fit(data);
    between();
    wrapper.fit(data);
    return bitsOf(model);
  };
  // Workers keep their momentum over all calls, so compare with a wrapper that had no failure.
  ToyModel otherModel(toy());
  auto other = toyWrapper(otherModel, 2).averageUpdaters(false).build();
  const auto trainOther = [&] {
    otherModel.copyStateFrom(fresh);
    other.fit(data);
    other.fit(data);
    return bitsOf(otherModel);
  };
  forEachAllocation([&](long nth, Lasting lasting) {
    CAPTURE(nth);
    bool any = false;
    const auto bits = train([&] {
      const Evaluation expected = evaluate(model, data);
      std::optional<Evaluation> evaluation;
      bool failed = false;
      std::tie(failed, any) = withShortage(nth, lasting, [&] { evaluation = wrapper.evaluate(data); });
      if (!failed) CHECK(*evaluation == expected);
      CHECK(wrapper.evaluate(data) == expected);
    });
    CHECK(bits == trainOther());
    return any;
  });
}

TEST_CASE("evaluate() in a listener runs out of memory") {
  long failing = -1;  // allocation in the evaluation; -1: none
  Lasting howLong = Lasting::No;
  bool any = false;
  ToyModel model(toy()), fresh(toy());
  fresh.state();
  auto data = examples(), held = examples();
  const auto listener = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event != "epochEnd") return;
    std::optional<FailingAllocations> shortage;
    if (failing >= 0) shortage.emplace(failing, howLong);
    fails([&] { trainer.evaluate(held); });
    any = shortage && shortage->any();
  });
  auto wrapper = toyWrapper(model, 2, 2).prefetchBuffer(1).listeners({listener}).build();
  const auto train = [&] {
    model.copyStateFrom(fresh);
    wrapper.fit(data, 2);
    return bitsOf(model);
  };
  const auto expected = train();
  forEachAllocation([&](long nth, Lasting lasting) {
    CAPTURE(nth);
    failing = nth;
    howLong = lasting;
    try {
      const auto bits = train();
      CHECK(bits == expected);
    } catch (const std::exception& error) {
      // The shortage may hit the reader, which reads ahead.
      const std::string text = error.what();
      CHECK_MESSAGE((text == "fit: memory has run out" || text.starts_with("the data iterator failed")),
                    text);
      failing = -1;
      CHECK(train() == expected);
      return true;
    }
    return any;
  });
}

TEST_CASE("build() runs out of memory") {
  ToyModel model(toy());
  auto data = examples();
  const ThreadsJoined joined;
  forEachAllocation([&](long nth, Lasting lasting) {
    CAPTURE(nth);
    std::optional<ParallelWrapper> wrapper;
    const FailingAllocations shortage(nth, lasting);
    std::optional<ParallelWrapper::Builder> builder;
    const bool failed = fails([&] { builder.emplace(toyWrapper(model, 2)); }) ||
                        failsByName([&] { wrapper.emplace(builder->build()); });
    CHECK(failed == !wrapper.has_value());
    return shortage.any();
  });
  CHECK(model.control().alive == 1);
}

TEST_CASE("a pass of DataParallel runs out of memory") {
  SequenceModel<double> model;
  const Tensor input = randomTensor<double>({7, 2, 3}, 8), gradOutput = randomTensor<double>({7, 2, 2}, 9);
  DataParallel reference(model, cpus(3), 0, unpinned());
  const Tensor expectedOutput = reference.forward(input), expectedGradInput = reference.backward(gradOutput);
  const ThreadsJoined joined;
  forEachAllocation([&](long nth, Lasting lasting) {
    CAPTURE(nth);
    bool any = false;
    std::optional<DataParallel> parallel;
    {
      const FailingAllocations shortage(nth, lasting);
      fails([&] {
        parallel.emplace(model, cpus(3), 0, unpinned());
        parallel->forward(input);
        parallel->backward(gradOutput);
      });
      any = shortage.any();
    }
    if (!parallel) parallel.emplace(model, cpus(3), 0, unpinned());
    CHECK(sameBits(parallel->forward(input), expectedOutput));
    CHECK(sameBits(parallel->backward(gradOutput), expectedGradInput));
    return any;
  });
}
