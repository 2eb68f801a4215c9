
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;
using doctest::Approx;

// With SGD and learning rate 0.5, a step moves p halfway to the batch's mean.

TEST_CASE("parameters become the mean weighted by examples, the score likewise") {
  // Worker 0: mean(2, 4) = 3, p = 1.5, score (2 + 8) / 2 = 5. Worker 1: 8, p = 4, score 32.
  // p = (2 * 1.5 + 1 * 4) / 3, score = (2 * 5 + 1 * 32) / 3.
  ToyModel model;
  ToyIterator data({{{2, 4}}, {{8}}});
  auto listener = mergedListener();
  toyWrapper(model, 2).listeners({listener}).build().fit(data);
  CHECK(model.parameters()[0] == Approx(7.0 / 3).epsilon(1e-7));
  const auto merges = listener->calls("merge");
  REQUIRE(merges.size() == 1);
  CHECK(merges[0].score == Approx(14));
  CHECK(merges[0].examples == 3);
  CHECK(model.score() == Approx(14));
}

TEST_CASE("masked examples weigh nothing") {
  // Worker 0: the third example is masked, and the fourth counts half: mean (2 + 4 + 0.5 * 6) / 2.5 = 3.6,
  // weight 2.5, p = 1.8. Worker 1: p = 4, weight 1. p = (2.5 * 1.8 + 4) / 3.5.
  ToyModel model;
  ToyIterator data({{{2, 4, 100, 6}, {1, 1, 0, 0.5}}, {{8}}});
  toyWrapper(model, 2).build().fit(data);
  CHECK(model.parameters()[0] == Approx(8.5 / 3.5).epsilon(1e-7));
}

TEST_CASE("idle workers do not contribute, and receive the mean") {
  // Round 1: p = 1, 2, 3 on workers 0, 1, 2: mean 2. Round 2: only worker 0 has a batch, {6}: p = 4, a copy.
  // The next epoch starts from 4 everywhere: 3, 4, 5, mean 4; then {6}: 5.
  ToyModel model;
  auto data = ToyIterator::ofValues({2, 4, 6, 6});
  auto wrapper = toyWrapper(model, 3).build();
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 4);
  model.control().forgetSteps();
  wrapper.fit(data);
  const auto steps = model.control().steps();
  for (int w = 0; w < 3; ++w) CHECK(steps[static_cast<std::size_t>(w)].before[0] == 4);
  CHECK(model.parameters()[0] == 5);
}

// Nesterov, learning rate and momentum 0.5: v = 0.5 v + g, p -= 0.5 (g + 0.5 v). From p = v = 0:
// worker 0, batch {4}: v = -4, p = 3. Worker 1, batch {8}: v = -8, p = 6. Merged p = 4.5.
// Round 2 has a batch for worker 0 only, {4}: g = 0.5.

TEST_CASE("averageUpdaters(false): each worker keeps its updater's state, and a listener sees their mean") {
  // Round 2: worker 0 continues from its own v = -4: v = -1.5, p = 4.5 - 0.5 (0.5 - 0.75) = 4.625. The user's
  // model: p = 4.625, v by examples (2 * -1.5 + 1 * -8) / 3 = -11/3.
  ToyModel model({.training = halfNesterovs()});
  auto data = ToyIterator::ofValues({4, 8, 4});
  std::vector<float> seen;
  const auto listener = onMerge([&](const MergeEvent& event) {
    seen.push_back(dynamic_cast<ToyModel&>(event.trainer.model()).updaterState("velocity")[0]);
  });
  auto wrapper = toyWrapper(model, 2).averageUpdaters(false).listeners({listener}).build();
  wrapper.fit(data);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == -6);  // (-4 - 8) / 2
  CHECK(seen[1] == Approx(-11.0 / 3).epsilon(1e-6));
  CHECK(model.parameters()[0] == 4.625f);
  CHECK(model.updaterState("velocity")[0] == seen[1]);

  // Second fit(), {4}: worker 0 has g = 0.625, v = -0.75 + 0.625 = -0.125, p = 4.625 - 0.5 (0.625 - 0.0625).
  auto more = ToyIterator::ofValues({4});
  wrapper.fit(more);
  CHECK(model.parameters()[0] == 4.34375f);
  CHECK(model.updaterState("velocity")[0] == -0.125f);
}

TEST_CASE("the user's model is not touched before the end, and no replica shares its memory") {
  ToyModel model({.size = 3, .training = halfNesterovs(), .statistics = true});
  model.setParameters({1, 2, 3});
  auto before = model.allBits();
  std::atomic<int> touched{0}, early{0};
  model.control().onStep = [&](const Batch&) {
    touched += model.parameters() == std::vector<float>{1, 2, 3} ? 0 : 1;
    early += model.control().replicated == 3 ? 0 : 1;  // all replicas are made before the first step
  };
  ToyIterator data(randomBatches(5, 7, 4, 3), 3);
  toyWrapper(model, 3, 2).build().fit(data, 3);
  CHECK(touched == 0);
  CHECK(early == 0);
  CHECK(model.allBits() != before);

  std::set<const Model*> replicas;
  std::set<const float*> memory;
  for (const auto& step : model.control().steps()) {
    replicas.insert(step.model);
    memory.insert(step.parameters);
  }
  CHECK(replicas.size() == 3);
  CHECK(memory.size() == 3);
  CHECK_FALSE(replicas.contains(&model));
  CHECK_FALSE(memory.contains(model.block(BlockKind::Parameters).values.data<float>()));
}

TEST_CASE("measureDivergence reports the replicas' distance from their mean, as worked out by hand") {
  // From 0, worker 0 on {2}: 1, worker 1 on {6, 6, 6}: 3. Weights 1 and 3: mean 2.5; the distance is
  // sqrt((1 * 1.5^2 + 3 * 0.5^2) / 4) = sqrt(0.75).
  for (const auto& [measure, reads] : {std::pair(true, false), {false, true}, {false, false}}) {
    ToyModel model;
    ToyIterator data({{{2}}, {{6, 6, 6}}});
    std::vector<double> all;
    const auto recorder = onMerge([&](const MergeEvent& event) { all.push_back(event.divergence); }, reads);
    toyWrapper(model, 2).measureDivergence(measure).listeners({recorder}).build().fit(data);
    REQUIRE(all.size() == 1);
    CHECK(all[0] == doctest::Approx(measure || reads ? std::sqrt(0.75) / 2.5 : 0));
  }
}
