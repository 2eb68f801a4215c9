#include "muster/parallel/wrapper_session.h"

#include "muster/core/optim/schedules.h"
#include "tests/parallel/two_worker_session.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("the plan has the batches of a late round, and tells schedules that are longer with more workers") {
  const std::string begin = "2 workers on cpu (1 thread each, not pinned), ";
  ToyModel plain, scheduled({.training = {.updater = Sgd{.learningRate = CosineSchedule{.iterations = 50}}}});
  CHECK(TwoWorkerSession(plain, Averaging{.frequency = 3})->plan() ==
        begin + "averaging every 3 iterations: 6 batches per round");
  CHECK_CONTAINS(TwoWorkerSession(plain, Averaging{.frequency = Period::postLocal(1000, 4)})->plan(),
                 ": 8 batches per round");
  CHECK(TwoWorkerSession(scheduled)->plan() ==
        begin +
            "averaging every iteration: 2 batches per round; the learning rate's "
            "schedule (cosine) ends after 50 iterations (100 batches)");
}

TEST_CASE("replicas are made once memory has room for them, by the settings of tests") {
  ToyModel model({.size = 100'000});
  CHECK_FALSE(internalsOf({}).pretendedDevices > 0);
  TwoWorkerSession session(model);
  CHECK_FALSE(session->replicas().made());
  // Of 0.4 MB: parameters and gradients of two workers, and a merged copy.
  CHECK(session->memoryNeed()->bytes() == doctest::Approx(5 * 400'000).epsilon(1e-3));
  session->makeReplicas({}, true);
  CHECK(session->replicas().made());
}
