#include "muster/core/listeners/performance_listener.h"

#include "tests/core/listeners/worker_times.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ReportLines = std::vector<std::string>;

struct Measured {
  explicit Measured(PerformanceOptions options) : listener(with(std::move(options))) { start(); }
  PerformanceOptions with(PerformanceOptions options) {
    options.sink = [this](std::string_view line) { lines.emplace_back(line); };
    options.now = [this] { return clock; };
    return options;
  }
  void start() {
    listener.onFitStart({trainer});
    listener.onEpochStart({trainer});
  }
  void merge(std::int64_t iteration, std::int64_t examples = 0) {
    listener.onMerge({.trainer = trainer, .iteration = iteration, .examples = examples});
  }

  EchoModel model;
  FakeTrainer trainer{model};
  ReportLines lines;
  std::chrono::steady_clock::time_point clock;
  PerformanceListener listener;
};

TEST_CASE("each line covers the time since the last line") {
  Measured m({.everyIterations = 10, .tableAtEnd = false});
  m.clock += 1s;
  m.merge(6);
  CHECK(m.lines.empty());
  m.clock += 1s;
  m.trainer.times = {times(0, 4, 1s, 1s, 0s, 0s)};
  m.merge(12);
  m.clock += 4s;
  m.trainer.times = {times(0, 24, 5s, 1s, 0s, 0s)};
  m.merge(20);
  CHECK(m.lines == ReportLines{"iteration 12: 200 samples/s; computing 50.0 %, waiting for data 50.0 %, "
                               "synchronising 0.0 %, merging 0.0 %",
                               "iteration 20: 500 samples/s; computing 100.0 %, waiting for data 0.0 %, "
                               "synchronising 0.0 %, merging 0.0 %"});
}

TEST_CASE("a line is printed every given number of seconds") {
  Measured m({.every = 5s, .tableAtEnd = false});
  m.trainer.times = {times(0, 1, 1s, 0s, 0s, 0s)};
  for (int second = 1; second <= 11; ++second) {
    m.clock += 1s;
    m.merge(second);
  }
  REQUIRE(m.lines.size() == 2);
  CHECK(m.lines[0].starts_with("iteration 5: 20 samples/s"));
  CHECK(m.lines[1].starts_with("iteration 10: 0 samples/s"));
}

TEST_CASE("over nodes, samples per second are those of all") {
  Measured m({.everyIterations = 10, .overNodes = true});
  for (int second = 1; second <= 10; ++second) {  // two nodes of one worker, each with 100 examples a second
    m.clock += 1s;
    m.trainer.times = {times(0, second, 1s * second, 0s, 0s, 0s)};
    m.merge(second, 200);
  }
  m.listener.onEpochEnd({m.trainer});
  m.listener.onFitEnd(m.trainer);
  CHECK(m.listener.report().samplesPerSecond() == 200);
  CHECK(m.lines ==
        ReportLines{
            "iteration 10: 200 samples/s on all nodes; here computing 100.0 %, waiting for data 0.0 %, "
            "synchronising 0.0 %, merging 0.0 %",
            "worker   device     batches   examples  samples/s  computing  data wait  sync wait    merging",
            "0        cpu             10       1000        100    100.0 %      0.0 %      0.0 %      0.0 %",
            "here                     10       1000        100    100.0 %      0.0 %      0.0 %      0.0 %",
            "all                               2000        200"});
}

TEST_CASE(
    "the report covers the epochs alone, also one that was cut short, and starts anew with each fit()") {
  Measured m({});
  for (int fit = 0; fit < 2; ++fit) {
    m.lines.clear();
    m.listener.onFitStart({m.trainer});
    for (int epoch = 1; epoch <= 2; ++epoch) {
      m.listener.onEpochStart({m.trainer});
      m.clock += 5s;
      m.trainer.times = {times(0, 10 * epoch, 1s * epoch, 0s, 0s, 1s * epoch)};
      if (epoch == 1 || fit == 0) m.listener.onEpochEnd({m.trainer});
      if (epoch == 1) m.clock += 100s;  // an evaluation, say
    }
    m.listener.onFitEnd(m.trainer);
    const PerformanceReport report = m.listener.report();
    CHECK(textOf(report.seconds, report.samplesPerSecond(), report.shares().merging) == "10 200 0.5");
    REQUIRE(m.lines.size() == 3);
    CHECK(m.lines[2] ==
          "all                      20       2000        200     50.0 %      0.0 %      0.0 %     50.0 %");
  }
  CHECK_THROWS_AS(PerformanceListener({.everyIterations = -1}), InvalidArgument);
}

}  // namespace
}  // namespace muster::test
