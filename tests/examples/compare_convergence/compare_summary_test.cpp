#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "examples/compare_convergence/summary.h"

namespace convergence {
namespace {

using doctest::Approx;

TEST_CASE("mean and sample standard deviation equal those worked out by hand") {
  const auto spread = example::spreadOf(std::array{2., 4., 9.});
  CHECK(spread.count == 3);
  CHECK(spread.mean == 5);
  CHECK(spread.deviation == Approx(std::sqrt((9 + 1 + 16) / 2.)));
  CHECK(example::spreadOf(std::array{7.}).mean == 7);
  CHECK(example::spreadOf(std::array{7.}).deviation == 0);
  CHECK(example::spreadOf({}).count == 0);
}

const Arm kAveraging{.mode = Mode::Averaging, .workers = 2, .frequency = 10};
const Arm kSynchronous{.mode = Mode::Synchronous, .workers = 2};
const Arm kSingle{};

Grid gridOf(std::vector<Arm> arms) {
  return {.arms = std::move(arms), .panels = {}, .seeds = {1, 2}};
}

/// A run with a point each second and 100 samples; the accuracies are given.
RunRecord runOf(const Arm& arm, std::int64_t seed, std::vector<double> accuracies, double pace = 1) {
  RunRecord run{.arm = arm, .seed = seed, .points = {}, .computeSeconds = 3 * pace, .cores = 2};
  for (const double accuracy : accuracies) {
    const auto n = static_cast<std::int64_t>(run.points.size()) + 1;
    run.points.push_back({.samples = 100 * n,
                          .iterations = n,
                          .rounds = arm.workers > 1 ? n : 0,
                          .seconds = pace * static_cast<double>(n),
                          .bytes = arm.workers > 1 ? 50 * n : 0,
                          .trainingLoss = 1,
                          .testLoss = 2,
                          .testAccuracy = accuracy,
                          .distance = arm.mode == Mode::Averaging ? 0.5 * static_cast<double>(n) : 0});
  }
  return run;
}

TEST_CASE("an arm is summarised over its seeds") {
  const std::vector<RunRecord> runs{runOf(kAveraging, 1, {0.5, 0.9, 0.8}, 1),
                                    runOf(kAveraging, 2, {0.4, 0.7, 0.9}, 2)};
  const auto arm = summarise(gridOf({kAveraging}), runs, 0.9).front();
  CHECK(arm.name == "averaging every 10, 2 workers");
  CHECK(arm.runs == 2);
  CHECK(arm.failures == 0);
  CHECK(arm.finalAccuracy.mean == Approx(0.85));
  CHECK(arm.finalAccuracy.deviation == Approx(0.1 / std::sqrt(2.)));
  CHECK(arm.worstAccuracy == 0.8);
  CHECK(arm.bestAccuracy == 0.9);
  // Seed 1 reaches the target at its second test, although it falls below it again; seed 2 at its third.
  CHECK(arm.reachesTarget());
  CHECK(arm.target.samples.mean == 250);
  CHECK(arm.target.seconds.mean == (2 + 6) / 2.);
  // Of the computing of 3 s and 6 s, two thirds and all.
  CHECK(arm.target.cost.computeSeconds == Approx((2 + 6) / 2.));
  CHECK(arm.target.cost.exchanges == 2.5);
  CHECK(arm.target.cost.bytes == 125);
  CHECK(arm.seconds.mean == (3 + 6) / 2.);
  CHECK(arm.bytes.mean == 150);
  CHECK(arm.distance.mean == 1);
  CHECK(arm.cost.exchanges == 3);
  CHECK(arm.cost.bytes == 150);
  CHECK(arm.cost.computeSeconds == 4.5);
  CHECK_FALSE(arm.oversubscribed);
  CHECK(arm.samples == 300);
  // 300 samples of two workers are 150 of one: eight do 1200 of them in 2 s.
  CHECK(samplesPerSecond(arm, {.workers = 8, .seconds = 2}) == 600);
}

TEST_CASE("speed-up is relative to synchronous training with the same workers, if both reach the target") {
  const Grid grid = gridOf({kSingle, kAveraging, kSynchronous});
  std::vector<RunRecord> runs{runOf(kSingle, 1, {0.9, 0.9}), runOf(kAveraging, 1, {0.1, 0.9}, 1),
                              runOf(kSynchronous, 1, {0.1, 0.1, 0.9}, 2)};
  auto arms = summarise(grid, runs, 0.9);
  CHECK(arms[0].speedUp.count == 0);
  CHECK(arms[1].speedUp.mean == 3);  // 6 s by 2 s
  CHECK(arms[2].speedUp.mean == 1);

  // Seed by seed: 6 s by 2 s, and 1 s by 1 s. A seed that only one arm has does not count.
  runs.push_back(runOf(kAveraging, 2, {0.9}));
  CHECK(summarise(grid, runs, 0.9)[1].speedUp.count == 1);
  runs.push_back(runOf(kSynchronous, 2, {0.9}));
  arms = summarise(grid, runs, 0.9);
  CHECK(arms[1].speedUp.mean == 2);
  CHECK(arms[1].speedUp.deviation == Approx(std::sqrt(2.)));

  // With one seed the arm misses the target, so there is no time to compare.
  runs.push_back(runOf(kAveraging, 3, {0.1, 0.8}));
  runs.push_back(runOf(kSynchronous, 3, {0.9}));
  arms = summarise(grid, runs, 0.9);
  CHECK(arms[1].target.reached == 2);
  CHECK_FALSE(arms[1].reachesTarget());
  CHECK(arms[1].speedUp.count == 0);

  auto other = kSynchronous;
  other.learningRate *= 2;
  arms = summarise(gridOf({kAveraging, other}), {runs[1], runOf(other, 1, {0.9})}, 0.9);
  CHECK(arms[0].speedUp.count == 0);
}

TEST_CASE("a run that failed is counted as a failure, and enters no mean") {
  auto failed = runOf(kAveraging, 2, {0.1});
  failed.failure = "the score is nan";
  const auto arm = summarise(gridOf({kAveraging}), {runOf(kAveraging, 1, {0.5, 0.9}), failed}, 0.9).front();
  CHECK(arm.runs == 2);
  CHECK(arm.failures == 1);
  CHECK(arm.finalAccuracy.count == 1);
  CHECK(arm.finalAccuracy.mean == 0.9);
  CHECK(arm.samples == 200);
  CHECK_FALSE(arm.reachesTarget());  // not with every seed
}

TEST_CASE("an arm without runs and one with more workers than cores are summarised") {
  const auto none = summarise(gridOf({kAveraging}), {}, 0.9).front();
  CHECK(none.runs == 0);
  CHECK_FALSE(none.reachesTarget());
  CHECK(none.samples == 0);
  auto run = runOf(kAveraging, 1, {0.9});
  run.cores = 1;
  CHECK(summarise(gridOf({kAveraging}), {run}, 0.9).front().oversubscribed);
}

}  // namespace
}  // namespace convergence
