#include "muster/parallel/wrapper_evaluation.h"

#include "muster/core/eval/evaluation.h"
#include "tests/parallel/two_worker_session.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/labelled_toy.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("an evaluation makes the replicas if there are none, and counts as the model alone") {
  ToyModel model({.size = 3});
  model.setParameters({0.1f, -0.2f, 0.3f});
  FakeTrainer trainer(model);
  TwoWorkerSession session(model);
  LabelledToy data(randomBatches(3, 7, 5, 3, true), 3, 3), none({}, 3, 3);
  const auto evaluateWith = [&](DataSetIterator& batches) {
    return WrapperEvaluation(trainer, session.options, session.session, session.caller, nullptr)
        .evaluateOverNodes(batches, {});
  };
  CHECK_REFUSED(evaluateWith(none), "evaluate: the data set has no batches");
  CHECK_FALSE(session->replicas().made());
  const Evaluation alone = evaluate(model, data);
  CHECK(evaluateWith(data).classification() == alone);
  CHECK(session->replicas().made());
  CHECK(evaluateWith(data).classification() == alone);
  WrapperEvaluation here(trainer, session.options, session.session, session.caller, nullptr);
  CHECK(here.evaluateHere(data, {}).classification() == alone);
}
