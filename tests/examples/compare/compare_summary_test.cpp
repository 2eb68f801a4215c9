#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <deque>

#include "examples/muster/compare/plots.h"
#include "examples/muster/compare/report.h"
#include "examples/muster/compare/summary.h"
#include "examples/muster/compare/svg.h"
#include "examples/muster/compare/tables.h"

namespace comparing {
namespace {

using doctest::Approx;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("mean, deviation and Student's interval equal those worked out by hand") {
  const auto spread = spreadOf(std::array{2., 4., 9.});
  CHECK(spread.count == 3);
  CHECK(spread.mean == 5);
  CHECK(spread.deviation == Approx(std::sqrt((9 + 1 + 16) / 2.)));
  // The two-sided 5 % points of a table of Student's t: 12.706, 4.303 and 2.776 for 1, 2 and 4 degrees.
  CHECK(spreadOf(std::array{1., 3.}).margin() ==
        Approx(12.706 * std::sqrt(2.) / std::sqrt(2.)).epsilon(1e-4));
  CHECK(spread.margin() == Approx(4.303 * std::sqrt(13.) / std::sqrt(3.)).epsilon(1e-4));
  CHECK(spreadOf(std::array{1., 2., 3., 4., 5.}).margin() ==
        Approx(2.776 * std::sqrt(2.5) / std::sqrt(5.)).epsilon(1e-3));
  CHECK(spreadOf(std::array{7.}).mean == 7);
  CHECK(std::isinf(spreadOf(std::array{7.}).margin()));
  CHECK_FALSE(spreadOf(std::array{7.}).differsFromZero());
  CHECK(spreadOf({}).count == 0);
}

/// A comparison whose runs are given.
struct Given {
  explicit Given(std::vector<std::string> arms) {
    for (auto& arm : arms) c.grid.arms.push_back({std::move(arm), {"training.workers=2"}});
    c.grid.seeds = {1, 2, 3};
    c.baseline = c.grid.arms.front().name;
    c.runs.resize(c.grid.arms.size());
    c.title = "run.json";
  }

  /// A run with a point each `pace` seconds and 100 samples; the scores are given.
  RunRecord& run(std::size_t arm, std::int64_t seed, const std::vector<double>& scores, double pace = 1) {
    auto& one = runs.emplace_back(RunRecord{.arm = c.grid.arms[arm].name,
                                            .seed = seed,
                                            .workers = 2,
                                            .computeSeconds = 3 * pace,
                                            .cores = 2,
                                            .threads = 2});
    for (const double score : scores) {
      const auto n = static_cast<std::int64_t>(one.points.size()) + 1;
      one.points.push_back({.samples = 100 * n,
                            .iterations = n,
                            .rounds = n,
                            .seconds = pace * static_cast<double>(n),
                            .bytes = 50 * n,
                            .trainingLoss = 1,
                            .loss = 2,
                            .score = score,
                            .distance = 0.5 * static_cast<double>(n)});
    }
    c.runs[arm].push_back(&one);
    return one;
  }

  const ArmSummary& arm(const std::string& name) {
    summarise(c);
    return *std::ranges::find(c.arms, name, &ArmSummary::name);
  }

  std::deque<RunRecord> runs;
  Comparison c{.grid = {}, .runs = {}};
};

TEST_CASE("an arm is summarised over its seeds") {
  Given given({"averaging"});
  given.run(0, 1, {0.5, 0.9, 0.8}, 1);
  given.run(0, 2, {0.4, 0.7, 0.9}, 2);
  given.c.wantedTarget = 0.9;
  const auto& arm = given.arm("averaging");
  CHECK(arm.runs == 2);
  CHECK(arm.failures == 0);
  CHECK(arm.score.mean == Approx(0.85));
  CHECK(arm.score.deviation == Approx(0.1 / std::sqrt(2.)));
  // Seed 1 reaches the target at its second test, although it falls below it again; seed 2 at its third.
  CHECK(arm.target.reached == 2);
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
  CHECK(arm.cost.computeSeconds == 4.5);
  CHECK(arm.samples == 300);
  // 300 samples of two workers are 150 of one: eight do 1200 of them in 2 s.
  CHECK(samplesPerSecond(arm, {.workers = 8, .seconds = 2}) == 600);
  CHECK_FALSE(given.c.complete());
}

TEST_CASE("arms are sorted, and differ by pairs of seeds with Student's interval") {
  Given given({"base", "other", "better"});
  const double base[] = {0.90, 0.92, 0.93}, other[] = {0.92, 0.93, 0.97}, better[] = {0.95, 0.97, 0.985};
  for (std::int64_t seed = 1; seed <= 3; ++seed) {
    const auto i = static_cast<std::size_t>(seed - 1);
    given.run(0, seed, {0.5, base[i]}, 2);
    given.run(1, seed, {other[i]}, 1);
    given.run(2, seed, {better[i]}, 1);
  }
  // Differences 0.02, 0.01 and 0.04: mean 0.02333, deviation 0.015275, margin 4.303 x 0.015275 / sqrt(3). Two
  // standard errors, 0.0176, would leave out 0, although 5 % of such intervals of equal arms should.
  const auto d = given.arm("other").difference;
  CHECK(d.mean == Approx(0.023333).epsilon(1e-4));
  CHECK(d.margin() == Approx(0.037946).epsilon(1e-3));
  CHECK_FALSE(d.differsFromZero());
  CHECK(given.c.arms.front().name == "better");
  CHECK(given.c.arms.back().name == "base");
  // 0.05, 0.05 and 0.055: mean 0.05167, deviation 0.0028868, margin 0.0071717.
  CHECK(conclusion(given.c) ==
        "Better than base: better by 5.17 points (95 % interval 4.45 to 5.88, 3 seeds); of 1 arm it is not "
        "known "
        "whether it differs.");
  given.c.baseline = "better";
  CHECK(given.arm("base").difference.mean == Approx(-0.051667).epsilon(1e-4));
  CHECK(conclusion(given.c).starts_with(
      "No arm is better than better. Worse: base by 5.17 points (95 % interval 4.45 to 5.88, 3 seeds)"));
  const auto cells = summaryCells(given.c, Detail::Brief);
  CHECK(cells[1][2] == "baseline");
  CHECK(cells[3][0] == "base");
  CHECK(cells[3][2] == "-5.17 [-5.88, -4.45]");
}

TEST_CASE("the conclusion counts arms without two pairs of finished runs as not known") {
  Given given({"base", "same", "wild"});
  for (std::int64_t seed = 1; seed <= 3; ++seed) {
    given.run(0, seed, {0.9});
    given.run(1, seed, {seed == 2 ? 0.8 : 0.95});
  }
  given.run(2, 1, {0.99});
  summarise(given.c);
  CHECK(conclusion(given.c) ==
        "No arm differs from base by more than chance would explain (95 % intervals of Student's t); of 1 "
        "arm it is "
        "not known whether it differs.");

  Given few({"base", "wild"});
  for (std::int64_t seed = 1; seed <= 2; ++seed) few.run(0, seed, {0.9});
  few.run(1, 1, {0.99});
  summarise(few.c);
  CHECK(conclusion(few.c) ==
        "Compared with base, of 1 arm it is not known whether it differs: fewer than two seeds have a "
        "finished run of "
        "both.");
}

TEST_CASE(
    "the target is reached by more than half of the arms with every seed, and a failed arm does not lower "
    "it") {
  Given given({"good", "fair", "bad"});
  given.run(0, 1, {0.981, 0.99});
  given.run(0, 2, {0.97, 0.9876});
  given.run(1, 1, {0.95, 0.94});
  given.run(1, 2, {0.9612, 0.95});
  given.run(2, 1, {0.25});
  CHECK(chooseTarget(given.c.runs) == 0.95);
  given.run(2, 2, {}).failure = "nan";
  CHECK(chooseTarget(given.c.runs) == 0.95);  // of good and fair, the lower one
  CHECK(chooseTarget({}) == 0);
  CHECK(given.arm("fair").target.reached == 2);
  CHECK(given.arm("bad").target.reached == 0);
  given.c.wantedTarget = 0.98;
  CHECK(given.arm("fair").target.reached == 0);
}

TEST_CASE("speed-up is the baseline's time to the target by the arm's, where both reach it with each seed") {
  Given given({"base", "fast"});
  given.c.wantedTarget = 0.9;
  given.run(0, 1, {0.1, 0.1, 0.9}, 2);
  given.run(1, 1, {0.1, 0.9}, 1);
  CHECK(given.arm("fast").speedUp.mean == 3);  // 6 s by 2 s
  given.run(0, 2, {0.9});
  given.run(1, 2, {0.9});
  CHECK(given.arm("fast").speedUp.mean == 2);
  given.run(0, 3, {0.9});
  given.run(1, 3, {0.1, 0.8});
  CHECK(std::isnan(given.arm("fast").speedUp.mean));
}

TEST_CASE("a failed run enters no mean, and marks tell of crowded cores and of load") {
  Given given({"averaging"});
  given.run(0, 1, {0.5, 0.9});
  given.run(0, 2, {0.1}).failure = "the score is nan";
  const auto& arm = given.arm("averaging");
  CHECK(arm.runs == 2);
  CHECK(arm.failures == 1);
  CHECK(arm.score.count == 1);
  auto cells = summaryCells(given.c, Detail::Full);
  CHECK(cells[1][1] == "90.00 (1 of 2 diverged)");
  CHECK_FALSE(contains(cells[1][5], "*"));
  auto& crowded = given.run(0, 3, {0.9});
  crowded.threads = 4;
  crowded.loaded = true;
  crowded.othersBusy = 1.26;
  summarise(given.c);
  cells = summaryCells(given.c, Detail::Full);
  CHECK(cells[1][5].ends_with(" *!"));
  const auto notes = summaryNotes(given.c, Detail::Brief);
  CHECK(notes[notes.size() - 2].starts_with("* 4 threads shared 2 cores"));
  CHECK(notes.back().starts_with("! Measured under load: other programs kept up to 1.3 cores busy"));
}

TEST_CASE("without tuning the table says so, with it what was chosen and what it cost") {
  Given given({"averaging"});
  given.run(0, 1, {0.9});
  summarise(given.c);
  CHECK(tuningNote(given.c).starts_with("Nothing was tuned: "));
  given.c.grid.tune = {"learningRate=0.1,0.2,0.3"};
  given.c.tuned = {{.arm = "averaging",
                    .choices = {{"learningRate=0.1", {}}, {"learningRate=0.2", {}}, {"learningRate=0.3", {}}},
                    .losses = {0.5, 0.25, INFINITY},
                    .best = 1,
                    .seconds = 12.5}};
  CHECK(tuningCells(given.c)[1] ==
        std::vector<std::string>{"averaging", "learningRate=0.2",
                                 "learningRate=0.1: 0.5, learningRate=0.2: 0.25, learningRate=0.3: diverged",
                                 "3", "12.5"});
  CHECK(tuningNote(given.c).starts_with("Tuned alike: "));
  given.c.tuned.front().best = 0;
  CHECK(tuningCells(given.c)[1][1] == "learningRate=0.1 ^");
  CHECK(contains(tuningNote(given.c), "others beyond it may be better"));
}

TEST_CASE("any two arms have strokes that differ") {
  std::set<std::string> strokes;
  for (std::size_t arm = 0; arm < 300; ++arm) strokes.insert(strokeOf(arm));
  CHECK(strokes.size() == 300);
}

TEST_CASE("ticks are round numbers, on a logarithmic axis powers of ten") {
  CHECK(niceTicks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(niceTicks(-30, 30, 3) == std::vector<double>{-20, 0, 20});
  CHECK(logTicks(1, 1000) == std::vector<double>{1, 10, 100, 1000});
  CHECK(logTicks(0.15, 2.5) == std::vector<double>{0.2, 0.5, 1, 2});
  CHECK(tickText(12000) == "12,000");
  CHECK(tickText(0.25) == "0.25");
}

TEST_CASE("curves are drawn with their numbers, and a single test gives no column of dots") {
  Given given({"a <b>", "c"});
  for (std::int64_t seed = 1; seed <= 2; ++seed) {
    given.run(0, seed, {0.5, 0.6 + 0.1 * static_cast<double>(seed)});
    given.run(1, seed, {0.5, 0.9});
  }
  summarise(given.c);
  const auto named = [](const std::vector<Plot>& plots, const std::string& name) {
    return std::ranges::find(plots, name, &Plot::name);
  };
  auto plots = plotsOf(given.c);
  const auto scores = named(plots, "score-by-samples");
  REQUIRE(scores != plots.end());
  CHECK(contains(scores->svg, "a &lt;b&gt;</text>"));
  CHECK(scores->values[0] ==
        std::vector<std::string>{"arm", "samples trained, all workers", "low", "mean", "high"});
  // 0.7 and 0.8 after 200 samples: 0.75 +- 0.0707107.
  CHECK(scores->values[2] ==
        std::vector<std::string>{"a <b>", "200", "0.6792893219", "0.75", "0.8207106781"});
  CHECK(named(plots, "differences") != plots.end());
  CHECK(named(plots, "score-by-bytes") != plots.end());
  const auto page = reportPage(given.c, tablesOf(given.c), plots);
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(contains(page, "<title>muster</title>"));
  CHECK_FALSE(contains(page, "<b>"));
  CHECK(contains(page, "plots/score-by-samples.svg"));

  Given once({"a", "c"});
  for (std::int64_t seed = 1; seed <= 2; ++seed)
    for (const std::size_t arm : {0, 1}) once.run(arm, seed, {0.5 + 0.1 * static_cast<double>(seed)});
  summarise(once.c);
  plots = plotsOf(once.c);
  CHECK(named(plots, "score-by-samples") == plots.end());
  CHECK(named(plots, "differences") != plots.end());
}

}  // namespace
}  // namespace comparing
