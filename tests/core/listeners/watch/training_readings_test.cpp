#include "muster/core/listeners/watch/training_readings.h"
#include "muster/core/listeners/watch/round_forecast.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

struct Reading {
  std::int64_t step = 0;
  double value = 0;
  bool operator==(const Reading&) const = default;
};

/// A trainer without a training: the test sends the events.
struct Told {
  explicit Told(ReadingOptions options = {}) : readings(withClock(std::move(options)), sink()) {
    trainer.times.resize(2);
    trainer.times[1].worker = 1;
  }
  ReadingOptions withClock(ReadingOptions options) {
    options.now = [this] { return time; };
    return options;
  }
  TrainingReadings::Sink sink() {
    return [this](std::string_view name, std::int64_t step, double value) {
      seen[std::string(name)].push_back({step, value});
    };
  }
  MergeEvent merge(std::int64_t iteration, std::int64_t examples, double score) {
    return {.trainer = trainer, .iteration = iteration, .examples = examples, .score = score};
  }
  void step(int worker, std::int64_t iteration, double score) {
    readings.iteration({.trainer = trainer,
                        .worker = worker,
                        .stamp = {.iteration = iteration},
                        .examples = 2,
                        .score = score});
  }

  EchoModel model;
  FakeTrainer trainer{model};
  std::chrono::steady_clock::time_point time{};
  std::map<std::string, std::vector<Reading>> seen;
  TrainingReadings readings;
};

using Readings = std::vector<Reading>;

}  // namespace

TEST_CASE("each score of a worker and of a merge is read, with its iteration") {
  Told told;
  told.readings.fitStart({told.trainer});
  told.step(0, 0, 1.5);
  told.step(1, 0, 2.5);
  told.step(0, 1, 1.25);
  told.readings.merge(told.merge(2, 6, 1.75));
  CHECK(told.seen["score/worker 0"] == Readings{{1, 1.5}, {2, 1.25}});
  CHECK(told.seen["score/worker 1"] == Readings{{1, 2.5}});
  CHECK(told.seen["score/merged"] == Readings{{2, 1.75}});
  CHECK(!told.seen.contains("merge/divergence"));
}

TEST_CASE("a reading every N iterations is the mean over the examples since the last one") {
  Told told({.everyIterations = 4});
  told.readings.fitStart({told.trainer});
  for (int i = 0; i < 8; ++i) told.step(0, i, i);
  CHECK(told.seen["score/worker 0"] == Readings{{4, 1.5}, {8, 5.5}});
  told.readings.merge(told.merge(3, 10, 1));
  told.readings.merge(told.merge(6, 30, 5));  // (10 + 150) / 40
  CHECK(told.seen["score/merged"] == Readings{{6, 4}});
}

TEST_CASE("a merge is read with its numbers and those that its strategy adds") {
  Told told;
  told.readings.fitStart({told.trainer});
  const std::vector<MergeValue> values{{"staleness", 2}};
  auto event = told.merge(5, 8, 1);
  event.mergeTime = 3ms;
  event.bytes = 4096;
  event.divergence = 0.25;
  event.values = values;
  told.readings.merge(event);
  CHECK(told.seen["merge/milliseconds"] == Readings{{5, 3}});
  CHECK(told.seen["merge/bytes"] == Readings{{5, 4096}});
  CHECK(told.seen["merge/divergence"] == Readings{{5, 0.25}});
  CHECK(told.seen["merge/staleness"] == Readings{{5, 2}});
  // A resynchronisation at an epoch's end has no examples, and its divergence is seen, too.
  event.examples = 0;
  event.divergence = 0.5;
  told.readings.merge(event);
  CHECK(told.seen["merge/divergence"] == Readings{{5, 0.25}, {5, 0.5}});
  CHECK(told.seen["score/merged"].size() == 1);
}

TEST_CASE("the speed is that of all nodes, and the shares of time are those of the workers here") {
  Told told({.everyTime = 1s});
  told.readings.resume(0, {.samples = 1000});  // another process trained these
  told.readings.fitStart({told.trainer});
  told.trainer.times[0] = {.worker = 0, .examples = 300, .computing = 1500ms, .merging = 500ms};
  told.time += 1s;
  told.readings.merge(told.merge(1, 400, 1));  // of several nodes, and not only of this one
  CHECK(told.seen["training/samples per second"] == Readings{{1, 400}});
  told.time += 2s;
  told.readings.merge(told.merge(2, 500, 1));
  CHECK(told.seen["training/samples per second"].back() == Reading{2, 250});
  CHECK(told.seen["time/all/computing"].front() == Reading{1, 0.75});
}

TEST_CASE("speed and shares of time cover training alone, and are read as often as the options say") {
  Told told({.everyTime = 1s});
  told.readings.fitStart({told.trainer});
  auto& first = told.trainer.times[0];
  first = {.worker = 0, .examples = 300, .computing = 600ms, .waitingForData = 200ms, .merging = 200ms};
  told.time += 999ms;
  told.readings.merge(told.merge(1, 150, 1));
  CHECK(!told.seen.contains("training/samples per second"));
  told.time += 1001ms;
  told.readings.merge(told.merge(2, 150, 1));
  CHECK(told.seen["training/samples per second"] == Readings{{2, 150}});
  CHECK(told.seen["time/worker 0/computing"] == Readings{{2, 0.6}});
  CHECK(told.seen["time/all/merging"] == Readings{{2, 0.2}});
  first.examples += 100;
  first.waitingForWorkers += 500ms;
  told.time += 500ms;
  told.readings.merge(told.merge(3, 60, 1));
  told.time += 30s;  // of an evaluation
  told.readings.epochEnd({told.trainer, 0, 3, 0.5, 400});
  CHECK(told.seen["training/samples per second"].back() ==
        Reading{3, 120});  // half of the interval is enough here
  CHECK(told.seen["time/all/synchronising"].back() == Reading{3, 1});
  told.readings.epochStart();
  first.merging += 1s;
  told.time += 999ms;
  told.readings.merge(told.merge(4, 40, 1));
  CHECK(told.seen["training/samples per second"].back() == Reading{3, 120});
  told.readings.fitEnd(told.trainer);
  CHECK(told.seen["training/samples per second"].back().step == 4);
  CHECK(told.seen["training/samples per second"].back().value == doctest::Approx(40 / 0.999));
  CHECK(told.seen["time/all/merging"].back() == Reading{4, 1});
  CHECK(told.seen["score/epoch"] == Readings{{3, 0.5}});
  CHECK(told.seen["memory/resident bytes"].back().value > 0);
}

TEST_CASE("a training shorter than the interval has times at the end of its first epoch") {
  Told told({.everyTime = 1h});
  told.readings.fitStart({told.trainer});
  told.trainer.times[0] = {.worker = 0, .examples = 300, .computing = 1s};
  told.time += 1s;
  told.readings.merge(told.merge(1, 300, 1));
  told.readings.epochEnd({told.trainer, 0, 1, 0.5, 300});
  CHECK(told.seen["training/samples per second"] == Readings{{1, 300}});
}

TEST_CASE("the learning rate is read that the network's next iteration uses") {
  auto configuration = mlp({2}, 2);
  configuration.inputShape = {2};
  configuration.updater = Sgd{.learningRate = CosineSchedule{.initial = 1, .iterations = 4}};
  MultiLayerNetwork network(configuration);
  network.init();
  FakeTrainer trainer(network);
  std::map<std::string, std::vector<Reading>> seen;
  TrainingReadings readings({}, [&](std::string_view name, std::int64_t step, double value) {
    seen[std::string(name)].push_back({step, value});
  });
  readings.fitStart({trainer});
  readings.merge({.trainer = trainer, .iteration = 2, .examples = 1, .score = 1});
  REQUIRE(seen["training/learning rate"].size() == 1);
  CHECK(seen["training/learning rate"][0].value == doctest::Approx(0.5));  // half of the way: cos(pi/2)
}

TEST_CASE("scores are read at most once in an interval, as means since the last reading") {
  Told told({.scoresEvery = 50ms});
  told.readings.fitStart({told.trainer, 0, 1, {}});
  told.time += 1s;
  for (int i = 0; i < 5; ++i) {
    told.time += 20ms;
    told.step(0, i, 1.0 + i);
    told.readings.merge(told.merge(i + 1, 2, 1.0 + i));
  }
  // The first reading at once, the next after 60 ms; later ones wait.
  CHECK(told.seen["score/worker 0"] == Readings{{1, 1}, {4, 3}});
  CHECK(told.seen["score/merged"] == Readings{{1, 1}, {4, 3}});
  CHECK(told.seen["merge/milliseconds"].size() == 2);
}

TEST_CASE("the last steps are read at the end, if no reading has been due") {
  Told told({.scoresEvery = 1h});
  told.readings.fitStart({told.trainer, 0, 1, {}});
  told.time += 1h;  // the first ones are due
  for (int i = 0; i < 3; ++i) {
    told.time += 20ms;
    told.step(0, i, 1.0 + i);
    told.readings.merge(told.merge(i + 1, 2, 1.0 + i));
  }
  told.readings.fitEnd(told.trainer);
  CHECK(told.seen["score/worker 0"] == Readings{{1, 1}, {3, 2.5}});
  CHECK(told.seen["score/merged"] == Readings{{1, 1}, {3, 2.5}});
  told.readings.fitEnd(told.trainer);
  CHECK(told.seen["score/merged"].size() == 2);
}

TEST_CASE("a forecast knows the last round of an epoch and of a fit by the rounds before") {
  Told told;
  RoundForecast forecast;
  const auto next = [&](std::int64_t epoch, std::int64_t batches) {
    const auto after = forecast.after({.trainer = told.trainer, .epoch = epoch, .batchesInEpoch = batches});
    return std::pair(after.endsEpoch, after.endsFit);
  };
  using Ends = std::pair<bool, bool>;
  forecast.fitStart({told.trainer, 4, 2, 13});
  CHECK(next(4, 6) == Ends{false, false});
  CHECK(next(4, 12) == Ends{true, false});
  CHECK(next(4, 13) == Ends{false, false});
  CHECK(next(5, 6) == Ends{false, false});
  CHECK(next(5, 12) == Ends{true, true});
  CHECK(next(5, 13) == Ends{false, false});
  forecast.fitStart({told.trainer, 0, 3, 4});  // a round is an epoch
  CHECK(next(0, 4) == Ends{true, false});
  CHECK(next(1, 4) == Ends{true, true});
  CHECK(next(2, 4) == Ends{false, false});
  forecast.fitStart({told.trainer, 0, 1, {}});
  CHECK(next(0, 4) == Ends{false, false});
}

TEST_CASE("samples, seconds, bytes and marks are read on request") {
  Told told({.everyTime = 0s, .places = true});
  told.trainer.times[0] = {.worker = 0, .examples = 1, .computing = 1s};
  told.readings.fitStart({told.trainer, 0, 1, {}});
  told.time += 2s;
  auto merge = told.merge(1, 8, 0.5);
  merge.bytes = 100;
  told.readings.merge(merge);
  told.time += 1s;
  told.trainer.times[0].examples = 2;
  merge.iteration = 2;
  merge.kind = MergeKind::Resynchronisation;
  told.readings.merge(merge);
  CHECK(told.seen["at/samples"] == Readings{{1, 8}, {2, 16}});
  CHECK(told.seen["at/seconds"] == Readings{{1, 2}, {2, 3}});
  CHECK(told.seen["at/bytes"] == Readings{{1, 100}, {2, 200}});
  CHECK(told.seen["mark/resynchronisation"] == Readings{{2, 1}});
}

TEST_CASE("readings refuse invalid options") {
  const auto problem = [](ReadingOptions options) {
    return thrown<InvalidArgument>([&] { TrainingReadings(options, {}); });
  };
  CHECK_CONTAINS(problem({.everyIterations = 0}), "everyIterations must be at least 1, got 0");
  CHECK_CONTAINS(problem({.everyTime = -1s}), "everyTime cannot be negative");
  CHECK_CONTAINS(problem({.scoresEvery = -1s}), "scoresEvery cannot be negative");
}
