#include "muster/parallel/training/fit_call.h"

#include "muster/parallel/nodes/node_transport.h"
#include "tests/parallel/training/small_fit.h"
#include "tests/support/failure.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

std::shared_ptr<RecordingListener> record(SmallFit& fit, RecordingListener::Hook hook = {}) {
  auto listener = mergedListener(std::move(hook));
  fit.listeners.push_back(listener);
  return listener;
}

/// Trains an epoch of the values {2}, {6}: two workers move from 0 to 1 and to 3, and are merged to 2.
void trainEpoch(SmallFit& fit, FitCall& call, std::int64_t epochs = 1) {
  call.run(epochs);
  CHECK(fit.caller.kind() != Activity::Kind::InListener);
}

}  // namespace

TEST_CASE("a call trains with all workers, tells the listeners and fills the model") {
  SmallFit fit(2);
  const auto listener = record(fit);
  fit.load();
  FitCall none(fit.setting());
  trainEpoch(fit, none, /*epochs=*/0);
  CHECK(listener->order() == "fitStart fitEnd");
  CHECK(fit.parameter() == 0);
  fit.load();
  FitCall call(fit.setting());
  trainEpoch(fit, call);
  CHECK(fit.parameter() == 2);
  CHECK(fit.model.iteration() == 1);
  CHECK(fit.model.epoch() == 1);
  CHECK(listener->order() == "fitStart fitEnd fitStart epochStart merge epochEnd fitEnd");
  const auto end = listener->calls("epochEnd").at(0);
  CHECK(end.examples == 2);
  CHECK(end.score == 10);  // (2^2 / 2 + 6^2 / 2) / 2
  CHECK_FALSE(call.regrouping());
  CHECK_FALSE(call.calledOnAllNodes());
  CHECK_FALSE(call.atRoundEnd());
}

TEST_CASE("in a later part of a fit only new listeners are told of the start") {
  SmallFit fit(2);
  const auto before = record(fit), now = record(fit);
  const std::atomic<bool> regroup{false};
  FitParts parts{.regroup = &regroup, .started = {before}};
  fit.load();
  FitCall call(fit.setting(&parts));
  trainEpoch(fit, call);
  CHECK(before->order() == "merge epochEnd fitEnd");
  CHECK(now->order() == "fitStart epochStart merge epochEnd fitEnd");
  CHECK(parts.started == Listeners{before, now});
  CHECK(parts.ended);
}

TEST_CASE("a part that pauses to regroup ends after a round, and no listener is told of an end") {
  SmallFit fit(2);
  const auto listener = record(fit);
  const std::atomic<bool> regroup{true};
  FitParts parts{.regroup = &regroup};
  fit.load();
  fit.data = ToyIterator::ofValues({2, 6, 2, 6});
  FitCall call(fit.setting(&parts));
  call.run(3);
  CHECK(call.regrouping());
  CHECK_FALSE(parts.ended);
  CHECK(listener->order() == "fitStart epochStart merge");
  CHECK(fit.parameter() == 2);
  call.usersModel().keepPlace();
  CHECK(positionIn(fit.model.trainingState())->nextBatch == 2);
}

TEST_CASE("only a failure of another node lets this one continue") {
  CHECK(isOfAnotherNode(std::make_exception_ptr(NodeFailure("node 1 is lost"))));
  CHECK_FALSE(isOfAnotherNode(std::make_exception_ptr(Error("boom"))));
  CHECK_FALSE(isOfAnotherNode(std::make_exception_ptr(1)));
}
