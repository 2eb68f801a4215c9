#include "muster/core/listeners/performance_listener.h"

#include "tests/support/fake_trainer.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

WorkerTimes times(int worker, std::int64_t batches, std::chrono::nanoseconds computing,
                  std::chrono::nanoseconds data, std::chrono::nanoseconds workers,
                  std::chrono::nanoseconds merging) {
  return {.worker = worker,
          .batches = batches,
          .examples = batches * 100,
          .computing = computing,
          .waitingForData = data,
          .waitingForWorkers = workers,
          .merging = merging};
}

struct Fixture {
  test::EchoModel model;
  test::FakeTrainer trainer{model};
  Lines lines;
  std::chrono::steady_clock::time_point clock;
  PerformanceOptions options{.sink = [this](std::string_view line) { lines.emplace_back(line); },
                             .now = [this] { return clock; }};

  MergeEvent merge(std::int64_t iteration) { return {.trainer = trainer, .iteration = iteration}; }
};

}  // namespace

TEST_CASE("shares of time add up to one, whatever the wall time is") {
  const auto report =
      performanceBetween({}, {times(0, 10, 6s, 1s, 2s, 1s), times(1, 30, 8s, 1s, 0s, 1s)}, 20s);
  CHECK(report.batches() == 40);
  CHECK(report.examples() == 4000);
  CHECK(report.samplesPerSecond() == 200);
  CHECK(report.samplesPerSecond(report.workers[1]) == 150);
  CHECK(report.shares().computing == doctest::Approx(0.7));  // 14 of 20 s
  CHECK(report.shares().waitingForData == doctest::Approx(0.1));
  CHECK(report.shares().waitingForWorkers == doctest::Approx(0.1));
  CHECK(report.shares().merging == doctest::Approx(0.1));
  CHECK(PerformanceReport::shares(report.workers[0]).waitingForWorkers == doctest::Approx(0.2));
  CHECK(report.line() ==
        "200 samples/s; computing 70.0 %, waiting for data 10.0 %, synchronising 10.0 %, merging 10.0 %");
  CHECK(performanceBetween({}, {times(0, 10, 6s, 1s, 2s, 1s)}, 10s).line() ==
        "100 samples/s; computing 60.0 %, waiting for data 10.0 %, synchronising 20.0 %, merging 10.0 %");
  CHECK(PerformanceReport().samplesPerSecond() == 0);
  CHECK(PerformanceReport().shares().computing == 0);
}

TEST_CASE("the columns of the table line up") {
  const auto report =
      performanceBetween({}, {times(0, 10, 6s, 1s, 2s, 1s), times(1, 30, 10s, 0s, 0s, 0s)}, 20s);
  CHECK(report.table() ==
        "worker   device     batches   examples  samples/s  computing  data wait  sync wait    merging\n"
        "0        cpu             10       1000         50     60.0 %     10.0 %     20.0 %     10.0 %\n"
        "1        cpu             30       3000        150    100.0 %      0.0 %      0.0 %      0.0 %\n"
        "all                      40       4000        200     80.0 %      5.0 %     10.0 %      5.0 %\n");
}

TEST_CASE_FIXTURE(Fixture, "each line covers the time since the last line") {
  options.everyIterations = 10;
  options.tableAtEnd = false;
  PerformanceListener listener(options);
  listener.onFitStart({trainer});
  listener.onEpochStart({trainer});
  clock += 1s;
  listener.onMerge(merge(6));
  CHECK(lines.empty());
  clock += 1s;
  trainer.times = {times(0, 4, 1s, 1s, 0s, 0s)};
  listener.onMerge(merge(12));
  clock += 4s;
  trainer.times = {times(0, 24, 5s, 1s, 0s, 0s)};
  listener.onMerge(merge(20));
  CHECK(lines == Lines{"iteration 12: 200 samples/s; computing 50.0 %, waiting for data 50.0 %, "
                       "synchronising 0.0 %, merging 0.0 %",
                       "iteration 20: 500 samples/s; computing 100.0 %, waiting for data 0.0 %, "
                       "synchronising 0.0 %, merging 0.0 %"});
}

TEST_CASE_FIXTURE(Fixture, "a line is printed every given number of seconds") {
  options.every = 5s;
  options.tableAtEnd = false;
  PerformanceListener listener(options);
  listener.onFitStart({trainer});
  listener.onEpochStart({trainer});
  trainer.times = {times(0, 1, 1s, 0s, 0s, 0s)};
  for (int second = 1; second <= 11; ++second) {
    clock += 1s;
    listener.onMerge(merge(second));
  }
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("iteration 5: 20 samples/s"));
  CHECK(lines[1].starts_with("iteration 10: 0 samples/s"));
}

TEST_CASE_FIXTURE(Fixture, "over nodes, samples per second are those of all") {
  options.overNodes = true;
  options.everyIterations = 5;
  PerformanceListener listener(options);
  listener.onFitStart({trainer});
  listener.onEpochStart({trainer});
  // Two nodes of one worker, each with 100 examples a second.
  for (int second = 1; second <= 10; ++second) {
    clock += 1s;
    trainer.times = {times(0, second, 1s * second, 0s, 0s, 0s)};
    auto event = merge(second);
    event.examples = 200;
    listener.onMerge(event);
  }
  listener.onEpochEnd({trainer});
  listener.onFitEnd(trainer);
  CHECK(listener.report().samplesPerSecond() == 200);
  CHECK(lines ==
        Lines{"iteration 5: 200 samples/s on all nodes; here computing 100.0 %, waiting for data 0.0 %, "
              "synchronising 0.0 %, merging 0.0 %",
              "iteration 10: 200 samples/s on all nodes; here computing 100.0 %, waiting for data 0.0 %, "
              "synchronising 0.0 %, merging 0.0 %",
              "worker   device     batches   examples  samples/s  computing  data wait  sync wait    merging",
              "0        cpu             10       1000        100    100.0 %      0.0 %      0.0 %      0.0 %",
              "here                     10       1000        100    100.0 %      0.0 %      0.0 %      0.0 %",
              "all                               2000        200"});
}

TEST_CASE_FIXTURE(Fixture, "the report covers the epochs alone, and starts anew with each fit()") {
  PerformanceListener listener(options);
  for (int fit = 0; fit < 2; ++fit) {
    lines.clear();
    listener.onFitStart({trainer});
    for (int epoch = 1; epoch <= 2; ++epoch) {
      listener.onEpochStart({trainer});
      clock += 5s;
      trainer.times = {times(0, 10 * epoch, 1s * epoch, 0s, 0s, 1s * epoch)};
      listener.onEpochEnd({trainer});
      clock += 100s;  // an evaluation, say
    }
    listener.onFitEnd(trainer);
    CHECK(listener.report().seconds == 10);
    CHECK(listener.report().samplesPerSecond() == 200);
    CHECK(listener.report().shares().merging == 0.5);
    REQUIRE(lines.size() == 3);
    CHECK(lines[2] ==
          "all                      20       2000        200     50.0 %      0.0 %      0.0 %     50.0 %");
  }
}

TEST_CASE_FIXTURE(Fixture, "the report counts an epoch that was cut short") {
  options.tableAtEnd = false;
  PerformanceListener listener(options);
  listener.onFitStart({trainer});
  listener.onEpochStart({trainer});
  clock += 2s;
  trainer.times = {times(0, 4, 1s, 0s, 0s, 0s)};
  listener.onFitEnd(trainer);
  CHECK(listener.report().samplesPerSecond() == 200);
  CHECK(lines.empty());
  CHECK_THROWS_AS(PerformanceListener({.everyIterations = -1}), InvalidArgument);
}

}  // namespace muster
