#include "tests/support/failure.h"

#include "tests/support/recording_listener.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("a listener that throws at any event, in either scope, ends fit() with its exception") {
  struct Where {
    ListenerScope scope;
    std::string event;
    std::string text;
    int worker = -1;
  };
  const auto kMerged = ListenerScope::Merged, kWorker = ListenerScope::Worker;
  const std::vector<Where> places = {
      {kMerged, "fitStart", "a listener failed at the start: boom"},
      {kMerged, "epochStart", "a listener failed at the start of an epoch: boom"},
      {kMerged, "merge", "a listener failed after iteration 2: boom"},
      {kMerged, "epochEnd", "a listener failed after iteration 4: boom"},
      {kMerged, "fitEnd", "a listener failed at the end: boom"},
      {kWorker, "fitStart", "a listener failed at the start: boom"},
      {kWorker, "epochStart", "a listener failed at the start of an epoch: boom"},
      {kWorker, "iteration", "worker 1 on cpu failed in a listener after batch 4 of epoch 1: boom", 1},
      {kWorker, "epochEnd", "a listener failed after iteration 4: boom"},
      {kWorker, "fitEnd", "a listener failed at the end: boom"}};
  for (const auto& place : places) {
    CAPTURE(place.event);
    CAPTURE(place.worker);
    ToyModel model;
    auto data = twosAndSixes();
    bool armed = true;
    auto throwing = std::make_shared<RecordingListener>(place.scope, [&](const RecordedCall& call, Trainer&) {
      if (armed && call.event == place.event && (call.event != "iteration" || call.batch == 3)) boom();
    });
    auto other = mergedListener();
    auto wrapper = toyWrapper(model, 2, 2).listeners({throwing, other}).build();
    const auto failure = failureOf(wrapper, data);
    CHECK(failure.text == place.text);
    CHECK(failure.worker == place.worker);
    // Every listener is notified of the end exactly once.
    CHECK(throwing->calls("fitEnd").size() == 1);
    CHECK(other->calls("fitEnd").size() == 1);
    CHECK(other->calls().back().event == "fitEnd");
    armed = false;
    checkTrainsAgain(wrapper, model);
  }
}

TEST_CASE("the first failure is thrown, whatever fails afterwards") {
  ToyModel model;
  model.control().onStep = [](const Batch&) { boom(); };
  auto data = twosAndSixes();
  auto listener = mergedListener([](const RecordedCall& call, Trainer&) {
    if (call.event == "fitEnd") throw std::runtime_error("also at the end");
  });
  auto wrapper = toyWrapper(model, 1).listeners({listener}).build();
  CHECK(failureOf(wrapper, data).text == "worker 0 on cpu failed in batch 1 of epoch 1: boom");
}
