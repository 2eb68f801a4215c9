#include "muster/parallel/training/listeners_here.h"

#include <doctest/doctest.h>

#include "muster/core/listeners/evaluation_listener.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_data.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("merged listeners are called on node 0, and on others only those that evaluate on all nodes") {
  auto validation = ToyIterator::ofValues({1});
  const auto merged = mergedListener(), ofWorkers = workerListener();
  const auto everywhere = std::make_shared<EvaluationListener>(validation);
  CHECK(isOnAllNodes(*everywhere));
  CHECK_FALSE(isOnAllNodes(*merged));
  const Listeners all{merged, ofWorkers, everywhere};
  CHECK(listenersHere(all, /*report=*/false, /*node=*/0) == all);
  CHECK(listenersHere(all, false, 1) == Listeners{ofWorkers, everywhere});
  CHECK(listenersHere(all, /*report=*/true, 0).size() == 4);
  CHECK(listenersHere(all, true, 1).size() == 2);
}
