#include "muster/parallel/training/internals.h"
#include "tests/support/failure.h"
#include "tests/support/late_scores.h"
#include "tests/support/recording_listener.h"

// Merges before the scores of their last steps are read. What a worker does with late scores is in
// replica_steps_test.

using namespace muster;
using namespace muster::test;

namespace {

LateOptions guarded() {
  return {.knowsWeights = true, .tellsRefusals = true};
}

/// Two workers that share one (pretended) device.
auto twoOnDevice(LateScores& model) {
  auto builder = toyWrapper(model, 2, 2);
  builder.internals({.pretendedDevices = 1});
  return builder;
}

}  // namespace

TEST_CASE("several workers on a device are merged before their last scores are read") {
  // In the first round worker 0 gets 1 and 5, worker 1 gets 2 and 6; then 3 and 7, 4 and 8.
  const auto data = [] { return ToyIterator::ofValues({1, 2, 5, 6, 3, 4, 7, 8, 9, 10}); };
  std::atomic<float> seen5 = 0;
  auto options = guarded();
  options.onWait = [&](double score, const LateScores& replica) {
    if (score == 5) seen5 = replica.parameter();
  };
  LateScores model(options), waiting(guarded()), watched(guarded());
  auto batches = data();
  twoOnDevice(model).build().fit(batches);
  CHECK(seen5 == 5.5f);  // worker 0 merges for both
  CHECK(model.parameter() == 9.5f);
  CHECK(model.iteration() == 5);

  // The scores equal those read immediately, also per epoch and in listeners.
  const auto seen = mergedListener(), expected = mergedListener();
  batches = data();
  twoOnDevice(watched).listeners({seen}).build().fit(batches);
  batches = data();
  auto builder = twoOnDevice(waiting);
  builder.listeners({expected}).measureDivergence(true).build().fit(batches);
  const auto scoresOf = [](const RecordingListener& listener) {
    std::vector<double> scores;
    for (const auto& call : listener.calls()) scores.push_back(call.score);
    return scores;
  };
  CHECK(scoresOf(*seen) == scoresOf(*expected));
  CHECK(model.score() == waiting.score());
}

TEST_CASE("a score that is not finite and read after its merge leaves replicas and merged copy as before") {
  LateScores model(guarded());
  auto wrapper = twoOnDevice(model).build();
  for (const bool first : {true, false}) {
    CAPTURE(first);
    auto bad = first ? ToyIterator::ofValues({1, 2, 3, std::nanf(""), 5, 6, 7, 8})
                     : ToyIterator::ofValues({1, 2, 3, 4, 5, 6, std::nanf(""), 8, 9, 10});
    const auto before = model.parameter();
    const auto iteration = model.iteration();
    const auto failure = failureOf(wrapper, bad);
    CHECK(contains(failure.text, first ? "batch 4 of epoch" : "batch 7 of epoch"));
    CHECK(model.parameter() == (first ? before : 3.5f));
    CHECK(model.iteration() == iteration + (first ? 0 : 2));
  }
  auto good = ToyIterator::ofValues({1, 2, 3, 4, 6, 8, 7, 10, 11, 12});
  wrapper.fit(good);  // the refused step leaves no trace
  CHECK(model.parameter() == 11.5f);
}
