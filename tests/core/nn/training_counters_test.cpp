#include "muster/core/nn/training_counters.h"

#include "tests/support/test.h"

namespace muster {
namespace {

struct Counters : detail::TrainingCounters {};

TEST_CASE("updates are counted on with the iterations from the state that was zero") {
  Counters counters;
  CHECK(counters.iteration() == 0);
  CHECK(counters.epoch() == 0);
  CHECK(counters.updates() == 0);
  struct Row {
    std::int64_t iteration, setUpdates, updates;  // setUpdates -1: not called
  };
  for (const Row& row : {Row{10, -1, 10}, Row{12, 0, 0}, Row{15, -1, 3}, Row{15, 40, 40}, Row{16, -1, 41},
                         Row{4, -1, 41}, Row{5, -1, 42}, Row{0, 0, 0}, Row{7, -1, 7}}) {
    CAPTURE(row.iteration);
    counters.setCounters(row.iteration, 3);
    if (row.setUpdates >= 0) counters.setUpdates(row.setUpdates);
    CHECK(counters.iteration() == row.iteration);
    CHECK(counters.epoch() == 3);
    CHECK(counters.updates() == row.updates);
  }
}

TEST_CASE("the number of a step's update is the stamp's, or counted to its iteration, from 1") {
  Counters counters;
  counters.setCounters(10, 1);
  counters.setUpdates(4);
  CHECK(counters.updatesAt({.iteration = 10}) == 5);
  CHECK(counters.updatesAt({.iteration = 12}) == 7);
  CHECK(counters.updatesAt({.iteration = 2}) == 1);
  CHECK(counters.updatesAt({.iteration = 12, .update = 99}) == 99);
}

TEST_CASE("a negative number of updates is refused") {
  Counters counters;
  CHECK_REFUSED(counters.setUpdates(-1), "model: an updater cannot have made -1 updates");
}

}  // namespace
}  // namespace muster
