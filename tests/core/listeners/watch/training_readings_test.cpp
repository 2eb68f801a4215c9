#include "muster/core/listeners/watch/training_readings.h"
#include "muster/core/listeners/watch/round_forecast.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

/// A trainer without a training: the test sends the events.
struct Told {
  explicit Told(ReadingOptions options = {}, Model* of = nullptr)
      : trainer(of ? *of : echo), readings(withClock(std::move(options)), sink()) {
    trainer.times.resize(2);
    trainer.times[1].worker = 1;
  }
  ReadingOptions withClock(ReadingOptions options) {
    options.now = [this] { return time; };
    return options;
  }
  TrainingReadings::Sink sink() {
    return [this](std::string_view name, std::int64_t step, double value) {
      auto& text = seen[std::string(name)];
      text += fmt::format("{}{}: {:.12g}", text.empty() ? "" : ", ", step, value);
    };
  }
  void start() { readings.fitStart({trainer, 0, 1, {}}); }
  MergeEvent merge(std::int64_t iteration, std::int64_t examples, double score) {
    return {.trainer = trainer, .iteration = iteration, .examples = examples, .score = score};
  }
  /// Merges after some time.
  void after(std::chrono::nanoseconds passed, std::int64_t iteration, std::int64_t examples,
             double score = 1) {
    time += passed;
    readings.merge(merge(iteration, examples, score));
  }
  void step(int worker, std::int64_t iteration, double score) {
    readings.iteration({.trainer = trainer,
                        .worker = worker,
                        .stamp = {.iteration = iteration},
                        .examples = 2,
                        .score = score});
  }
  /// "iteration: value, ..."; "" if nothing was read.
  std::string operator[](const std::string& name) { return seen.contains(name) ? seen[name] : ""; }

  EchoModel echo;
  FakeTrainer trainer;
  std::chrono::steady_clock::time_point time{};
  std::map<std::string, std::string> seen;
  TrainingReadings readings;
};

const std::string kSpeed = "training/samples per second";

TEST_CASE("each score of a worker and of a merge is read, with its iteration") {
  Told told;
  told.start();
  told.step(0, 0, 1.5);
  told.step(1, 0, 2.5);
  told.step(0, 1, 1.25);
  told.after(0s, 2, 6, 1.75);
  CHECK(told["score/worker 0"] == "1: 1.5, 2: 1.25");
  CHECK(told["score/worker 1"] == "1: 2.5");
  CHECK(told["score/merged"] == "2: 1.75");
  CHECK(told["merge/divergence"] == "");
}

TEST_CASE("a reading every N iterations is the mean over the examples since the last one") {
  Told told({.everyIterations = 4});
  told.start();
  for (int i = 0; i < 8; ++i) told.step(0, i, i);
  CHECK(told["score/worker 0"] == "4: 1.5, 8: 5.5");
  told.after(0s, 3, 10, 1);
  told.after(0s, 6, 30, 5);  // (10 + 150) / 40
  CHECK(told["score/merged"] == "6: 4");
}

TEST_CASE("a merge is read with its numbers and those that its strategy adds") {
  Told told;
  told.start();
  const std::vector<MergeValue> values{{"staleness", 2}};
  auto event = told.merge(5, 8, 1);
  event.mergeTime = 3ms;
  event.bytes = 4096;
  event.divergence = 0.25;
  event.values = values;
  told.readings.merge(event);
  CHECK(textOf(told["merge/milliseconds"], told["merge/bytes"], told["merge/staleness"]) ==
        "5: 3 5: 4096 5: 2");
  // A resynchronisation at an epoch's end has no examples, and its divergence is seen, too.
  event.examples = 0;
  event.divergence = 0.5;
  told.readings.merge(event);
  CHECK(told["merge/divergence"] == "5: 0.25, 5: 0.5");
  CHECK(told["score/merged"] == "5: 1");
}

TEST_CASE("the speed is that of all nodes, and the shares of time are those of the workers here") {
  Told told({.everyTime = 1s});
  told.readings.resume(0, {.samples = 1000});  // another process trained these
  told.start();
  told.trainer.times[0] = {.worker = 0, .examples = 300, .computing = 1500ms, .merging = 500ms};
  told.after(1s, 1, 400);  // of several nodes, and not only of this one
  told.after(2s, 2, 500);
  CHECK(told[kSpeed] == "1: 400, 2: 250");
  CHECK(told["time/all/computing"].starts_with("1: 0.75"));
}

TEST_CASE("speed and shares of time cover training alone, and are read as often as the options say") {
  Told told({.everyTime = 1s});
  told.start();
  auto& first = told.trainer.times[0];
  first = {.worker = 0, .examples = 300, .computing = 600ms, .waitingForData = 200ms, .merging = 200ms};
  told.after(999ms, 1, 150);
  CHECK(told[kSpeed] == "");
  told.after(1001ms, 2, 150);
  CHECK(told[kSpeed] == "2: 150");
  CHECK(textOf(told["time/worker 0/computing"], told["time/all/merging"]) == "2: 0.6 2: 0.2");
  first.examples += 100;
  first.waitingForWorkers += 500ms;
  told.after(500ms, 3, 60);
  told.time += 30s;  // of an evaluation
  told.readings.epochEnd({told.trainer, 0, 3, 0.5, 400});
  CHECK(told[kSpeed] == "2: 150, 3: 120");  // half of the interval is enough here
  CHECK(told["time/all/synchronising"].ends_with("3: 1"));
  told.readings.epochStart();
  first.merging += 1s;
  told.after(999ms, 4, 40);
  CHECK(told[kSpeed] == "2: 150, 3: 120");
  told.readings.fitEnd(told.trainer);
  CHECK(told[kSpeed] == fmt::format("2: 150, 3: 120, 4: {:.12g}", 40 / 0.999));
  CHECK(told["time/all/merging"].ends_with("4: 1"));
  CHECK(told["score/epoch"] == "3: 0.5");
  CHECK_CONTAINS(told["memory/resident bytes"], "4: ");
}

TEST_CASE("a training shorter than the interval has times at the end of its first epoch") {
  Told told({.everyTime = 1h});
  told.start();
  told.trainer.times[0] = {.worker = 0, .examples = 300, .computing = 1s};
  told.after(1s, 1, 300);
  told.readings.epochEnd({told.trainer, 0, 1, 0.5, 300});
  CHECK(told[kSpeed] == "1: 300");
}

TEST_CASE("the learning rate is read that the network's next iteration uses") {
  auto configuration = mlp({2}, 2);
  configuration.inputShape = {2};
  configuration.updater = Sgd{.learningRate = CosineSchedule{.initial = 1, .iterations = 4}};
  MultiLayerNetwork network(configuration);
  network.init();
  Told told({}, &network);
  told.start();
  told.after(0s, 2, 1);
  CHECK(told["training/learning rate"] == "2: 0.5");  // half of the way: cos(pi/2)
}

TEST_CASE("scores are read at most once in an interval, as means since the last reading, and at the end") {
  Told told({.scoresEvery = 50ms});
  told.start();
  told.time += 1s;
  for (int i = 0; i < 6; ++i) {
    told.step(0, i, 1.0 + i);
    told.after(20ms, i + 1, 2, 1.0 + i);
  }
  // The first reading at once, the next after 60 ms; later ones wait.
  for (const bool ended : {false, true, true})
    for (const char* name : {"score/worker 0", "score/merged"}) {
      if (ended) told.readings.fitEnd(told.trainer);
      CHECK(told[name] == (ended ? "1: 1, 4: 3, 6: 5.5" : "1: 1, 4: 3"));
    }
  CHECK(told["merge/milliseconds"].starts_with("1: 0, 4: 0"));
}

TEST_CASE("a forecast knows the last round of an epoch and of a fit by the rounds before") {
  Told told;
  RoundForecast forecast;
  using Ends = std::pair<bool, bool>;
  const auto next = [&](std::int64_t epoch, std::int64_t batches) {
    const auto after = forecast.after({.trainer = told.trainer, .epoch = epoch, .batchesInEpoch = batches});
    return Ends(after.endsEpoch, after.endsFit);
  };
  forecast.fitStart({told.trainer, 4, 2, 13});
  for (const std::int64_t epoch : {4, 5}) {
    CHECK(next(epoch, 6) == Ends{false, false});
    CHECK(next(epoch, 12) == Ends{true, epoch == 5});
    CHECK(next(epoch, 13) == Ends{false, false});
  }
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
  told.start();
  told.time += 2s;
  auto merge = told.merge(1, 8, 0.5);
  merge.bytes = 100;
  told.readings.merge(merge);
  told.time += 1s;
  told.trainer.times[0].examples = 2;
  merge.iteration = 2;
  merge.kind = MergeKind::Resynchronisation;
  told.readings.merge(merge);
  CHECK(told["at/samples"] == "1: 8, 2: 16");
  CHECK(told["at/seconds"] == "1: 2, 2: 3");
  CHECK(told["at/bytes"] == "1: 100, 2: 200");
  CHECK(told["mark/resynchronisation"] == "2: 1");
}

TEST_CASE("readings refuse invalid options") {
  const auto problem = [](const ReadingOptions& options) {
    return thrown<InvalidArgument>([&] { TrainingReadings(options, {}); });
  };
  CHECK_CONTAINS(problem({.everyIterations = 0}), "everyIterations must be at least 1, got 0");
  CHECK_CONTAINS(problem({.everyTime = -1s}), "everyTime cannot be negative");
  CHECK_CONTAINS(problem({.scoresEvery = -1s}), "scoresEvery cannot be negative");
}

}  // namespace
}  // namespace muster::test
