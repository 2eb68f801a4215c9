#include "muster/core/listeners/performance_report.h"

#include "tests/support/test.h"

using namespace muster;
using namespace std::chrono_literals;

namespace {

WorkerTimes workerOf(int number, std::int64_t batches, std::chrono::nanoseconds computing) {
  return {.worker = number,
          .batches = batches,
          .examples = 10 * batches,
          .computing = computing,
          .waitingForData = 1s,
          .waitingForWorkers = 2s,
          .merging = 1s};
}

}  // namespace

TEST_CASE("a report adds up the workers' batches, examples and times") {
  const PerformanceReport report{.seconds = 10, .workers = {workerOf(0, 4, 6s), workerOf(1, 6, 6s)}};
  CHECK(report.batches() == 10);
  CHECK(report.examples() == 100);
  CHECK(report.samplesPerSecond() == 10);
  CHECK(report.samplesPerSecond(report.workers[1]) == 6);
  CHECK(report.shares().computing == 0.6);
  CHECK(report.shares().waitingForWorkers == 0.2);
  CHECK(report.line() ==
        "10 samples/s; computing 60.0 %, waiting for data 10.0 %, synchronising 20.0 %, merging 10.0 %");
}

TEST_CASE("examples of other nodes count in the speed") {
  PerformanceReport report{.seconds = 2, .workers = {workerOf(0, 4, 6s)}};
  report.elsewhere = 60;
  CHECK(report.line().starts_with("50 samples/s on all nodes; here computing 60.0 %"));
  CHECK_CONTAINS(report.line(), "synchronising 20.0 %");
  CHECK(report.examples() == 40);
}

TEST_CASE("without time there are no shares and no speed, and without a batch no line of shares") {
  PerformanceReport report{.workers = {WorkerTimes{}}};
  CHECK(report.samplesPerSecond() == 0);
  CHECK(report.shares().computing == 0);
  report.seconds = 1;
  report.workers = {{.waitingForWorkers = 1s}};
  CHECK(report.line() == "0 samples/s");
  report.elsewhere = 60;
  CHECK(report.line() == "60 samples/s on all nodes");
}

TEST_CASE("between two readings each worker's work is the difference") {
  const auto report =
      performanceBetween({workerOf(0, 4, 6s)}, {workerOf(0, 9, 8s), workerOf(1, 2, 3s)}, 500ms);
  CHECK(report.seconds == 0.5);
  CHECK(report.workers[0].batches == 5);
  CHECK(report.workers[0].examples == 50);
  CHECK(report.workers[0].computing == 2s);
  CHECK(report.workers[0].merging == 0s);
  CHECK(report.workers[1].batches == 2);  // a new one
}
