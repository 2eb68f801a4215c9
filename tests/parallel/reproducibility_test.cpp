#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "tests/support/one_core.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kWidth = 301;

/// Trains a larger model for three epochs. @param delays  seed of sleeps in the iterator, the steps and the
/// listeners; none: no thread sleeps.
std::vector<std::byte> train(int workers, std::int64_t frequency, const Updater& updater,
                             std::optional<std::uint64_t> delays) {
  ToyModel model({.size = kWidth, .training = {.updater = updater, .l2 = 0.01}, .statistics = true});
  ToyIterator data(randomBatches(11, 13, 6, kWidth, true), kWidth);
  auto sleep = std::make_shared<RandomDelays>(delays.value_or(0), 400us);
  RecordingListener::Hook hook;
  if (delays) {
    data.onNext = [sleep](std::int64_t, std::int64_t) { (*sleep)(); };
    model.control().onStep = [sleep](const Batch&) { (*sleep)(); };
    hook = [sleep](const RecordedCall&, Trainer&) { (*sleep)(); };
  }
  auto wrapper = toyWrapper(model, workers, frequency)
                     .prefetchBuffer(delays ? static_cast<std::int64_t>(*delays % 5) : 16)
                     .listeners({std::make_shared<RecordingListener>(ListenerScope::Worker, hook),
                                 std::make_shared<RecordingListener>(ListenerScope::Merged, hook)})
                     .build();
  wrapper.fit(data, 2);
  wrapper.fit(data);
  return model.allBits();
}

std::uint64_t hash(const std::vector<std::byte>& bytes) {  // FNV-1a
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const auto b : bytes) h = (h ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
  return h;
}

std::string hashesOfAllRuns() {
  std::string text;
  for (int workers = 1; workers <= 4; ++workers)
    text += fmt::format("{:016x} ", hash(train(workers, 3, Nesterovs{.learningRate = 0.1}, std::nullopt)));
  return text;
}

}  // namespace

TEST_CASE("training has the same bits, run after run, however the threads are delayed") {
  for (int workers = 1; workers <= 4; ++workers)
    for (const std::int64_t frequency : {1, 3}) {
      CAPTURE(workers);
      CAPTURE(frequency);
      const Updater updater =
          frequency == 1 ? Updater(Adam{.learningRate = 0.05}) : Nesterovs{.learningRate = 0.1};
      const auto calm = train(workers, frequency, updater, std::nullopt);
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        CAPTURE(seed);
        CHECK(train(workers, frequency, updater, seed) == calm);
      }
    }
}

TEST_CASE("another number of workers gives another result") {
  // Otherwise the test above would prove nothing.
  const auto one = train(1, 3, Nesterovs{.learningRate = 0.1}, std::nullopt);
  CHECK(train(2, 3, Nesterovs{.learningRate = 0.1}, std::nullopt) != one);
}

// Runs in its own process: see below.
TEST_CASE("child: on one core" * doctest::skip()) {
  limitToOneCore();
  std::printf("hashes: %s\n", hashesOfAllRuns().c_str());
}

TEST_CASE("training has the same bits in a process that is limited to one core") {
  const auto output = outputOfCase("child: on one core");
  CAPTURE(output);
  CHECK(output.find("hashes: " + hashesOfAllRuns()) != std::string::npos);
}
