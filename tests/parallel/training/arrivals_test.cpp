#include "muster/parallel/training/arrivals.h"

#include <doctest/doctest.h>

#include <limits>

using namespace muster;

namespace {

using Counts = std::vector<std::int64_t>;

/// Worker 0 is twice as fast; both arrive every 2 iterations. Batches go to workers 0 1 0 0 1 0 0 1 0;
/// workers 0, 0 and 1 land after 3, 6 and 6 batches.
ArrivalPlan twoSpeeds() {
  return {.iterations = {2, 2}, .speeds = {2, 1}};
}

Arrivals begun(const ArrivalPlan& plan, std::int64_t landings = 0) {
  Arrivals arrivals(plan, 0.1);
  arrivals.beginEpoch(/*iteration=*/0, /*epoch=*/0, landings);
  arrivals.planNext();
  return arrivals;
}

/// The workers of the landing with their staleness, as in "0:2"; those that do not land are left out.
std::string landing(const Arrivals& arrivals) {
  std::string text;
  for (std::size_t w = 0; w < arrivals.landing().size(); ++w)
    if (const Arrival& one = arrivals.landing()[w]; one.arrives)
      text += std::string(text.empty() ? "" : " ") + std::to_string(w) + ":" + std::to_string(one.staleness);
  return text;
}

std::string text(const EpochPosition& at) {
  std::string text = std::to_string(at.nextBatch);
  for (const auto later : at.trainedLater) text += " " + std::to_string(later);
  return text;
}

}  // namespace

TEST_CASE("on the virtual clock a worker lands stale by the landings since it continued") {
  Arrivals arrivals = begun(twoSpeeds());
  const std::vector<Contribution> both{{.batches = 2, .iteration = 1}, {.batches = 1, .iteration = 1}};
  CHECK(arrivals.untilLanding(0, 0) == 2);
  CHECK(arrivals.untilLanding(0, 1) == 1);
  CHECK(arrivals.untilLanding(0, 3) == 0);
  CHECK(arrivals.untilLanding(1, 0) == 1);
  std::vector<std::string> all;
  for (int i = 0; i < 4; ++i) {
    arrivals.chooseLanding(both, /*last=*/false, /*met=*/true);
    all.push_back(landing(arrivals));
    arrivals.planNext();
    if (i == 0) CHECK(arrivals.untilLanding(0, 0) == 2);
  }
  CHECK(all == std::vector<std::string>{"0:0", "0:0", "1:2", "0:1"});
  CHECK(arrivals.landings() == 4);
  // The last landing merges all that have trained.
  arrivals.chooseLanding(both, /*last=*/true, true);
  CHECK(landing(arrivals) == "0:0 1:1");
  arrivals.chooseLanding(std::vector<Contribution>{{}, {.batches = 1}}, true, true);
  CHECK(landing(arrivals) == "1:0");
  // The next epoch begins as the first one.
  arrivals.beginEpoch(9, 1);
  CHECK(arrivals.landings() == 0);
  arrivals.planNext();
  CHECK(arrivals.untilLanding(0, 0) == 2);
  arrivals.chooseLanding(both, false, true);
  CHECK(landing(arrivals) == "0:0");
}

TEST_CASE("on the wall clock, once a worker has no batches, the others train without limit") {
  Arrivals wall = begun({.iterations = {2, 3}, .speeds = {1, 1}, .wallClock = true});
  wall.chooseLanding(std::vector<Contribution>{{.ended = true}, {.batches = 1}}, false, /*met=*/true);
  CHECK(landing(wall) == "");
  CHECK(wall.untilLanding(1, 1) == std::numeric_limits<std::int64_t>::max());
  wall.beginEpoch(0, 1);
  CHECK(wall.untilLanding(1, 0) == 3);
}

TEST_CASE("on the wall clock a worker lands once it has trained its iterations") {
  Arrivals arrivals = begun({.iterations = {2, 3}, .speeds = {1, 1}, .wallClock = true});
  CHECK(arrivals.onWallClock());
  CHECK_FALSE(arrivals.hasArrived(1, 2));
  CHECK(arrivals.hasArrived(1, 3));
  CHECK(arrivals.untilLanding(1, 1) == 2);
  const std::vector<Contribution> both{{.batches = 1}, {.batches = 3}};
  arrivals.chooseLanding(both, false, /*met=*/true);
  CHECK(landing(arrivals) == "1:0");
  arrivals.arrive(0);
  CHECK_FALSE(arrivals.hasArrived(0, 2));  // it no longer runs
  CHECK(arrivals.untilLanding(0, 0) == 0);
  arrivals.chooseLanding(both, false, /*met=*/false);
  CHECK(landing(arrivals) == "0:1");
  CHECK(arrivals.landings() == 2);
  arrivals.arrive(1);
  arrivals.beginEpoch(0, 1);
  CHECK(arrivals.hasArrived(1, 3));
}

TEST_CASE("iterations that vary follow from the departure") {
  Arrivals arrivals =
      begun({.iterationsFrom =
                 [](const Departure& from) { return 100 * from.epoch + from.iteration + from.worker + 1; },
             .speeds = {1, 1},
             .wallClock = true});
  CHECK(arrivals.iterations(0) == 1);
  CHECK(arrivals.iterations(1) == 2);
  arrivals.chooseLanding(std::vector<Contribution>{{.batches = 1, .iteration = 6}, {}}, false, true);
  CHECK(arrivals.iterations(0) == 7);
  CHECK(arrivals.iterations(1) == 2);
  arrivals.beginEpoch(/*iteration=*/8, /*epoch=*/2);
  CHECK(arrivals.iterations(0) == 209);
}

TEST_CASE("the position lists what is trained beyond the first gap") {
  const EpochPosition begun{.nextBatch = 3, .trainedLater = {4}};  // untrained: 3, 5, 6, ...
  struct Dealt {
    Counts counts;
    const char* after;
  };
  for (const Dealt& row : {Dealt{{0, 0}, "3 4"}, Dealt{{1, 0}, "5"}, Dealt{{0, 1}, "3 4 5"},
                           Dealt{{1, 1}, "6"}, Dealt{{3, 0}, "5 6 7"}})
    CHECK(text(afterDealing(begun, ArrivalOrder(twoSpeeds()), row.counts)) == row.after);
  CHECK(text(afterTaking({.nextBatch = 3, .trainedLater = {9}}, 3, Counts{3})) == "3 4 5 9");
  struct Taken {
    std::int64_t taken;
    Counts untrained;
    const char* after;
  };
  for (const Taken& row : {Taken{0, {}, "3 4"}, Taken{3, {}, "7"}, Taken{3, {5}, "5 6"},
                           Taken{2, {3}, "3 4 5"}, Taken{3, {6, 3}, "3 4 5"}, Taken{1, {3}, "3 4"}})
    CHECK(text(afterTaking(begun, row.taken, row.untrained)) == row.after);
}
