// The trainer's promises, for every averaging rule and for a rule that is not in the library.

#include "muster/parallel/training/internals.h"
#include "tests/parallel/builder_of.h"
#include "tests/parallel/for_every_rule.h"
#include "tests/support/one_core.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kWidth = 61;
constexpr int kBatches =
    11;  // no multiple of any number of workers or period here, so the last round is partial

ToyModel toy() {
  return ToyModel(
      {.size = kWidth,
       .training = {.updater =
                        Nesterovs{.learningRate = StepSchedule{.initial = 0.05, .decay = 0.5, .every = 4},
                                  .momentum = 0.5},
                    .l2 = 0.01},
       .statistics = true,
       .split = true});
}

ToyIterator batches() {
  return ToyIterator(randomBatches(5, kBatches, 6, kWidth, /*ragged=*/true), kWidth);
}

struct Disturbance {
  std::optional<std::uint64_t> delays = {};  // seed of sleeps in iterator, steps, updates and listeners
  bool listeners = false;
  std::int64_t prefetch = 16;
  int devices = 0;  // pretended devices
};

/// Three epochs in two calls.
std::vector<std::byte> train(const NamedRule& rule, int workers, const Disturbance& disturbance = {}) {
  auto model = toy();
  auto data = batches();
  const auto sleep = std::make_shared<RandomDelays>(disturbance.delays.value_or(0), 300us);
  RecordingListener::Hook hook;
  if (disturbance.delays) {
    data.onNext = [sleep](std::int64_t, std::int64_t) { (*sleep)(); };
    model.control().onStep = [sleep](const Batch&) { (*sleep)(); };
    model.control().onUpdate = [sleep](const Model&, const BatchStamp&) { (*sleep)(); };
    hook = [sleep](const RecordedCall&, Trainer&) { (*sleep)(); };
  }
  auto builder = builderOf(model, workers, rule.options);
  builder.prefetchBuffer(disturbance.prefetch).internals({.pretendedDevices = disturbance.devices});
  if (disturbance.listeners) builder.listeners({workerListener(hook), mergedListener(hook)});
  auto wrapper = builder.build();
  wrapper.fit(data, 2);
  wrapper.fit(data);
  return model.allBits();
}

std::string bitsOfEveryRule() {
  std::string text;
  for (const NamedRule& rule : someRules()) {
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const auto b : train(rule, rule.workers(3)))
      hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
    text += fmt::format("{:016x} ", hash);
  }
  return text;
}

}  // namespace

TEST_CASE("every rule: the same bits, with delays, with listeners, with any prefetch buffer, on a device") {
  forEveryRule({1, 2, 3}, [](const NamedRule& rule, int w) {
    const auto calm = train(rule, w);
    CHECK(train(rule, w) == calm);
    CHECK(train(rule, w, {.listeners = true}) == calm);
    CHECK(train(rule, w, {.prefetch = 0}) == calm);
    CHECK(train(rule, w, {.devices = 1}) == calm);
    CHECK(train(rule, w, {.devices = 2}) == train(rule, w, {.delays = 4, .devices = 2}));
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      CHECK(train(rule, w, {.delays = seed, .listeners = seed % 2 == 1}) == calm);
  });
}

TEST_CASE("every rule moves the model, and the number of workers matters") {
  for (const NamedRule& rule : someRules()) {
    CAPTURE(rule.name);
    CHECK(train(rule, 2) != toy().allBits());
    CHECK(train(rule, 2) != train(rule, rule.workers(3)));
  }
}

TEST_CASE("every rule: the same bits of epochs in one call and in several") {
  forEveryRule({1, 3}, [](const NamedRule& rule, int w) {
    auto together = toy(), apart = toy();
    auto data = batches();
    builderOf(together, w, rule.options).build().fit(data, 3);
    auto wrapper = builderOf(apart, w, rule.options).build();
    for (int call = 0; call < 3; ++call) wrapper.fit(data);
    CHECK(together.allBits() == apart.allBits());
    CHECK(apart.epoch() == 3);
    CHECK(apart.iteration() == 3 * ((kBatches + w - 1) / w));
  });
}

TEST_CASE("at an epoch's end another wrapper continues from the model's state, to the same bits") {
  const OuterAveraging outer{.frequency = 2, .rate = 0.7, .momentum = 0.8};
  auto nesterov = outer;
  nesterov.nesterov = true;
  std::vector<AnyStrategy> rules = {
      outer, nesterov, OverlappedAveraging{.frequency = 4, .delay = 2, .rate = 0.7, .momentum = 0.8},
      StreamingOuter{.frequency = 6, .fragments = 1, .mixing = 0, .rate = 0.7, .momentum = 0.8},
      AsynchronousOuter{.frequency = 2, .rate = 0.7, .momentum = 0.8, .nesterov = true, .speeds = {1, 0.4}}};
  for (const Codec& codec :
       {Codec(Bf16Codec{}), Codec(Int8Codec{}), Codec(E3M0Codec{}), Codec(TopKCodec{.share = 0.1})}) {
    nesterov.codec = codec;
    rules.emplace_back(nesterov);
  }
  for (const AnyStrategy& rule : rules) {
    CAPTURE(rule.make()->describe());
    const auto sgd = [] {  // no updater's state to keep
      return ToyModel(
          {.size = kWidth, .training = {.updater = Sgd{.learningRate = 0.5}}, .statistics = true});
    };
    auto whole = sgd(), first = sgd(), second = sgd();
    auto data = batches();
    builderOf(whole, 2, rule).build().fit(data, 4);
    builderOf(first, 2, rule).build().fit(data, 2);
    second.copyStateFrom(first);
    builderOf(second, 2, rule).build().fit(data, 2);
    CHECK(second.allBits() == whole.allBits());
  }
}

TEST_CASE("every rule: training with more workers than batches") {
  forEveryRule({kBatches + 2}, [](const NamedRule& rule, int w) {
    const auto bits = train(rule, w);
    CHECK(bits != toy().allBits());
    CHECK(train(rule, w, {.delays = 1}) == bits);
  });
}

TEST_CASE("every rule: a stop merges what was trained") {
  forEveryRule({1, 2, 3}, [](const NamedRule& rule, int w) {
    const auto stopped = [&](std::optional<std::uint64_t> delays) {
      auto model = toy();
      auto data = batches();
      const auto stopping = mergedListener([](const RecordedCall& call, Trainer& trainer) {
        if (call.event == "merge" && call.iteration >= 2) trainer.stopFit();
      });
      const auto sleep = std::make_shared<RandomDelays>(delays.value_or(0), 300us);
      if (delays) model.control().onStep = [sleep](const Batch&) { (*sleep)(); };
      auto wrapper = builderOf(model, w, rule.options).listeners({stopping}).build();
      wrapper.fit(data, 2);
      CHECK(model.epoch() == 0);
      CHECK(model.iteration() >= 2);
      CHECK(model.iteration() <= 6);
      wrapper.fit(data);  // continues
      return model.allBits();
    };
    const auto bits = stopped({});
    CHECK(stopped(1) == bits);
    CHECK(stopped(2) == bits);
  });
}

// Runs in its own process: see below.
TEST_CASE("child: every rule on one core" * doctest::skip()) {
  limitToOneCore();
  std::printf("hashes: %s\n", bitsOfEveryRule().c_str());
}

TEST_CASE("every rule: the same bits in a process that is limited to one core") {
  const auto output = outputOfCase("child: every rule on one core");
  CAPTURE(output);
  CHECK(output.find("hashes: " + bitsOfEveryRule()) != std::string::npos);
}
