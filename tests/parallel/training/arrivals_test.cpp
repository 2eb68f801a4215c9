#include "muster/parallel/training/arrivals.h"

#include <doctest/doctest.h>

#include "muster/parallel/training/contribution.h"

using namespace muster;

namespace {

using Counts = std::vector<std::int64_t>;

/// Worker 0 is twice as fast; both arrive every 2 iterations. Batches go to workers 0 1 0 0 1 0; worker 0
/// lands after 3 batches and after 6.
Arrivals twoSpeeds() {
  const Schedule rate = 0.1;
  Arrivals arrivals({.iterations = {2, 2}, .speeds = {2, 1}}, rate);
  arrivals.beginEpoch(/*iteration=*/0, /*epoch=*/0);
  arrivals.planNext();
  return arrivals;
}

}  // namespace

TEST_CASE("a worker trains until the next landing, which merges those that arrive in it") {
  Arrivals arrivals = twoSpeeds();
  CHECK_FALSE(arrivals.onWallClock());
  CHECK(arrivals.iterations(0) == 2);
  CHECK(arrivals.untilLanding(0, 0) == 2);
  CHECK(arrivals.untilLanding(1, 0) == 1);
  const std::vector<Contribution> trained = {{.batches = 2}, {.batches = 1}};
  arrivals.chooseLanding(trained, /*last=*/false, /*met=*/true);
  CHECK(arrivals.landing()[0].arrives);
  CHECK_FALSE(arrivals.landing()[1].arrives);
}

TEST_CASE("the last landing of an epoch merges all workers that have trained") {
  Arrivals arrivals = twoSpeeds();
  const std::vector<Contribution> trained = {{}, {.batches = 1}};
  arrivals.chooseLanding(trained, /*last=*/true, /*met=*/true);
  CHECK_FALSE(arrivals.landing()[0].arrives);
  CHECK(arrivals.landing()[1].arrives);
}

TEST_CASE("the position in an epoch follows from the batches that each worker has trained") {
  EpochPosition position = afterDealing({}, twoSpeeds().newOrder(), {2, 0});
  CHECK(position.nextBatch == 1);
  CHECK(position.trainedLater == Counts{2});
  position = afterDealing({}, twoSpeeds().newOrder(), {2, 1});
  CHECK(position.nextBatch == 3);
  CHECK(position.trainedLater.empty());
}

TEST_CASE("batches that were taken and not trained are left for the next training") {
  // Batches 2, 3 and 5 are taken, since 4 is trained; 3 was interrupted.
  const Counts untrained{3};
  const auto position = afterTaking({.nextBatch = 2, .trainedLater = {4}}, 3, untrained);
  CHECK(position.nextBatch == 3);
  CHECK(position.trainedLater == Counts{4, 5});
}
