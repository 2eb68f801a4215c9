#include "muster/core/listeners/performance_report.h"

#include "tests/core/listeners/worker_times.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

std::string sharesOf(const PerformanceReport::Shares& shares) {
  return digitsOf(12, shares.computing, shares.waitingForData, shares.waitingForWorkers, shares.merging);
}

TEST_CASE("a report adds up the workers' batches, examples and times, whatever the wall time is") {
  const PerformanceReport report{.seconds = 20,
                                 .workers = {times(0, 10, 6s, 1s, 2s, 1s), times(1, 30, 8s, 1s, 0s, 1s)}};
  CHECK(textOf(report.batches(), report.examples(), report.samplesPerSecond(),
               report.samplesPerSecond(report.workers[1])) == "40 4000 200 150");
  CHECK(sharesOf(report.shares()) == "0.7 0.1 0.1 0.1");  // 14 of 20 s
  CHECK(sharesOf(PerformanceReport::shares(report.workers[0])) == "0.6 0.1 0.2 0.1");
  CHECK(report.line() ==
        "200 samples/s; computing 70.0 %, waiting for data 10.0 %, synchronising 10.0 %, merging 10.0 %");
}

TEST_CASE("the columns of the table line up") {
  const PerformanceReport report{.seconds = 20,
                                 .workers = {times(0, 10, 6s, 1s, 2s, 1s), times(1, 30, 10s, 0s, 0s, 0s)}};
  CHECK(report.table() ==
        "worker   device     batches   examples  samples/s  computing  data wait  sync wait    merging\n"
        "0        cpu             10       1000         50     60.0 %     10.0 %     20.0 %     10.0 %\n"
        "1        cpu             30       3000        150    100.0 %      0.0 %      0.0 %      0.0 %\n"
        "all                      40       4000        200     80.0 %      5.0 %     10.0 %      5.0 %\n");
}

TEST_CASE("examples of other nodes count in the speed") {
  PerformanceReport report{.seconds = 2, .workers = {times(0, 1, 6s, 1s, 2s, 1s)}};
  report.elsewhere = 60;
  CHECK(report.line() ==
        "80 samples/s on all nodes; here computing 60.0 %, waiting for data 10.0 %, synchronising 20.0 %, "
        "merging 10.0 %");
  CHECK(report.examples() == 100);
}

TEST_CASE("without time there are no shares and no speed, and without a batch no line of shares") {
  PerformanceReport report{.workers = {WorkerTimes{}}};
  CHECK(textOf(report.samplesPerSecond(), report.shares().computing) == "0 0");
  CHECK(textOf(PerformanceReport().samplesPerSecond(), PerformanceReport().shares().computing) == "0 0");
  report.seconds = 1;
  report.workers = {{.waitingForWorkers = 1s}};
  CHECK(report.line() == "0 samples/s");
  report.elsewhere = 60;
  CHECK(report.line() == "60 samples/s on all nodes");
}

TEST_CASE("between two readings each worker's work is the difference") {
  const auto report = performanceBetween({times(0, 4, 6s, 1s, 2s, 1s)},
                                         {times(0, 9, 8s, 1s, 2s, 1s), times(1, 2, 3s, 1s, 2s, 1s)}, 500ms);
  CHECK(report.seconds == 0.5);
  const auto& [known, added] = std::tie(report.workers[0], report.workers[1]);
  CHECK(textOf(known.batches, known.examples, known.computing.count(), known.merging.count()) ==
        "5 500 2000000000 0");
  CHECK(added.batches == 2);
}

}  // namespace
}  // namespace muster::test
