#include "muster/core/comparison/comparison.h"

#include <sstream>

#include "muster/core/comparison/detail/tables.h"
#include "tests/core/comparison/given.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using detail::Detail;
using doctest::Approx;
using test::contains;
using test::Given;

TEST_CASE("an arm is summarised over its seeds") {
  Given given({"averaging"});
  given.run(0, 1, {0.5, 0.9, 0.8}, 1);
  given.run(0, 2, {0.4, 0.7, 0.9}, 2);
  given.c.target = 0.9;
  const auto arm = given.arm("averaging");
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
  CHECK(arm.target.cost.rounds == 2.5);
  CHECK(arm.target.cost.bytes == 125);
  CHECK(arm.seconds.mean == (3 + 6) / 2.);
  CHECK(arm.bytes.mean == 150);
  CHECK(arm.distance.mean == 1);
  CHECK(arm.cost.rounds == 3);
  CHECK(arm.cost.computeSeconds == 4.5);
  CHECK(arm.samples == 300);
  // 300 samples of two workers are 150 of one: eight do 1200 of them in 2 s.
  CHECK(samplesPerSecond(arm, {.workers = 8, .seconds = 2}) == 600);
  CHECK(given.c.planned() == 3);  // three seeds
  CHECK(given.c.finished() == 2);
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
  CHECK(given.summary().arms.front().name == "better");
  CHECK(given.summary().arms.back().name == "base");
  // 0.05, 0.05 and 0.055: mean 0.05167, deviation 0.0028868, margin 0.0071717.
  CHECK(given.summary().conclusion ==
        "Better than base: better by 5.17 points (95 % interval 4.45 to 5.88, 3 seeds); of 1 arm it is not "
        "known whether it differs.");
  given.c.baseline = "better";
  CHECK(given.arm("base").difference.mean == Approx(-0.051667).epsilon(1e-4));
  CHECK(given.summary().conclusion.starts_with(
      "No arm is better than better. Worse: base by 5.17 points (95 % interval 4.45 to 5.88, 3 seeds)"));
  const auto cells = summaryCells(given.c, given.summary(), Detail::Brief);
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
  CHECK(given.summary().conclusion ==
        "No arm differs from base by more than chance would explain (95 % intervals of Student's t); of 1 "
        "arm it is not known whether it differs.");

  Given few({"base", "wild"});
  for (std::int64_t seed = 1; seed <= 2; ++seed) few.run(0, seed, {0.9});
  few.run(1, 1, {0.99});
  CHECK(few.summary().conclusion ==
        "Compared with base, of 1 arm it is not known whether it differs: fewer than two seeds have a "
        "finished run of both.");
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
  CHECK(std::isnan(chooseTarget({})));
  CHECK(given.arm("fair").target.reached == 2);
  CHECK(given.arm("bad").target.reached == 0);
  given.c.target = 0.98;
  CHECK(given.arm("fair").target.reached == 0);
}

TEST_CASE(
    "speed-up is the geometric mean of the baseline's time to the target by the arm's, where both reach it "
    "with each seed") {
  Given given({"base", "fast"});
  given.c.target = 0.9;
  given.run(0, 1, {0.1, 0.1, 0.9}, 2);
  given.run(1, 1, {0.1, 0.9}, 1);
  CHECK(given.arm("fast").speedUp() == Approx(3));  // 6 s by 2 s
  given.run(0, 2, {0.9});
  given.run(1, 2, {0.9});
  // 3 and 1: their geometric mean is sqrt(3), and their logarithms' deviation ln(3) / sqrt(2).
  CHECK(given.arm("fast").speedUp() == Approx(std::sqrt(3.)));
  CHECK(summaryCells(given.c, given.summary(), Detail::Full)[2][6] == "1.73 ×/÷ 2.17");
  given.run(0, 3, {0.9});
  given.run(1, 3, {0.1, 0.8});
  CHECK(std::isnan(given.arm("fast").speedUp()));
}

TEST_CASE("a failed run enters no mean, and marks tell of crowded cores and of load") {
  Given given({"averaging"});
  given.run(0, 1, {0.5, 0.9});
  given.run(0, 2, {0.1}).failure = "the score is nan";
  const auto arm = given.arm("averaging");
  CHECK(arm.runs == 2);
  CHECK(arm.failures == 1);
  CHECK(arm.score.count == 1);
  auto cells = summaryCells(given.c, given.summary(), Detail::Full);
  CHECK(cells[1][1] == "90.00 (1 of 2 diverged)");
  CHECK_LACKS(cells[1][5], "*");
  auto& crowded = given.run(0, 3, {0.9});
  crowded.threads = 4;
  crowded.loaded = true;
  crowded.othersBusy = 1.26;
  cells = summaryCells(given.c, given.summary(), Detail::Full);
  CHECK(cells[1][5].ends_with(" *!"));
  const auto notes = summaryNotes(given.c, given.summary(), Detail::Brief);
  CHECK(notes[notes.size() - 2].starts_with("* 4 threads shared 2 cores"));
  CHECK(notes.back().starts_with("! Measured under load: other programs kept up to 1.3 cores busy"));
}

TEST_CASE("runs are added by arm and seed, each once, and with one metric") {
  Comparison c;
  CHECK(test::thrown<InvalidArgument>([&] { c.summarise(); }) == "comparison: it has no arm; add runs first");
  Given percent({"one"});
  percent.c.target = 97;
  CHECK(test::thrown<InvalidArgument>([&] { percent.summary(); }) ==
        "comparison: the target is a score of at most 1, not percent; got 97");
  const auto run = [](const std::string& arm, std::int64_t seed, double score) {
    return RunRecord{.arm = arm,
                     .settings = {"every=" + arm},
                     .seed = seed,
                     .metric = "r2",
                     .workers = 2,
                     .points = {{.samples = 10, .score = score}},
                     .cores = 2};
  };
  auto diverged = run("1", 1, 0);
  diverged.failure = "the score is nan";
  diverged.metric = "accuracy";  // it was not tested
  c.add(diverged);
  c.add(run("1", 2, 0.5));
  c.add(run("10", 2, 0.75));
  CHECK(c.grid.metric == "r2");
  CHECK(c.grid.arms == std::vector<ComparisonArm>{{"1", {"every=1"}}, {"10", {"every=10"}}});
  CHECK(c.grid.seeds == std::vector<std::int64_t>{1, 2});
  CHECK(c.finished() == 3);
  CHECK(c.planned() == 4);
  CHECK(test::thrown<InvalidArgument>([&] { c.add(run("10", 2, 0.5)); }) ==
        "comparison: \"10\" has a run with seed 2 already");
  auto other = run("10", 3, 0.5);
  other.metric = "accuracy";
  CHECK(test::thrown<InvalidArgument>([&] { c.add(other); }) ==
        "comparison: a run of \"10\" has the metric accuracy, and others have r2");
  const auto summary = c.summarise();
  CHECK(summary.baseline == "1");
  CHECK(summary.metric.name == "R2");
  CHECK(summary.arms.front().name == "10");
  CHECK(summary.arms.front().difference.mean == 0.25);
  c.baseline = "11";
  CHECK(test::thrown<InvalidArgument>([&] { c.text(); }) ==
        "comparison: no arm is called \"11\", the baseline");
}

TEST_CASE("runs of more arms than the grid has are refused") {
  Given given({"base"});
  given.run(0, 1, {0.5});
  given.c.runs.resize(2);
  CHECK(test::thrown<InvalidArgument>([&] { given.summary(); }) ==
        "comparison: there are runs of 2 arms, and the grid has 1");
}

TEST_CASE("the text has table, notes and conclusion, and remarks have the advice that was given") {
  Given given({"base", "other"});
  given.c.grid.seeds = {1};
  given.run(0, 1, {0.5, 0.9});
  given.run(1, 1, {0.5, 0.8});
  CHECK_CONTAINS(given.c.text(), "\nOne seed: whether arms differ by more than chance is not known.\n");
  CHECK_CONTAINS(given.c.text(500), " learning rate is at a disadvantage.\n");
  given.c.advice = {.tuning = "tune it", .seeds = "add some"};
  const auto text = given.c.text(500);
  // Both arms reach 0.8, the best that more than half of them reach, at their second test: 200 samples, 2 s.
  CHECK(text.starts_with(
      "arm    accuracy, %  difference, points  samples to 80 %  seconds to 80 %  seconds in all\n"
      "base         90.00            baseline              200             2.00            2.00\n"
      "other        80.00              -10.00              200             2.00            2.00\n"));
  CHECK_CONTAINS(text, "disadvantage; tune it.\n");
  CHECK_CONTAINS(text, "is not known; add some.\n");
  std::istringstream lines(given.c.text(40));
  std::string line;
  for (int i = 0; i < 4; ++i) std::getline(lines, line);           // the table
  while (std::getline(lines, line)) CHECK(line.size() <= 40 + 2);  // a line may begin with two spaces
}

TEST_CASE("a report is a page, a table and a file for each table and plot") {
  const test::TemporaryDirectory directory;
  Given given({"base", "other"});
  for (std::int64_t seed = 1; seed <= 2; ++seed) {
    given.run(0, seed, {0.5, 0.9});
    given.run(1, seed, {0.5, 0.75});
  }
  given.c.restoresBest = true;
  given.c.writeReport(directory / "out");
  const auto read = [&](const char* name) { return test::readFile(directory / "out" / name); };
  CHECK_CONTAINS(read("report.html"),
                 "<h1>run.json: 2 arms</h1>\n<p class=\"conclusion\">Not finished: 4 of 6 runs");
  CHECK_CONTAINS(read("report.html"), "<li>base: <code>training.workers=2</code></li>");
  CHECK_CONTAINS(read("table.md"), "| base | 90.00 ± 0.00 (n = 2) | baseline | ");
  CHECK_CONTAINS(read("table.md"), "best one by the validation data");
  CHECK_CONTAINS(read("report.html"),
                 "by samples; the last point is of the best model, which early stopping has restored (");
  CHECK(read("tables/arms.csv").starts_with("arm,\"accuracy, %\",\"difference, points\","));
  CHECK(read("plots/differences.csv") == "arm,low,mean,high,seeds\nother,,-15,,2\n");
  CHECK_CONTAINS(read("plots/score-by-samples.svg"), "</svg>");
}

TEST_CASE("a difference that is the same with each seed has no interval and no verdict") {
  Given given({"base", "v1"});
  given.c.grid.testExamples = 26;
  for (std::int64_t seed = 1; seed <= 3; ++seed) {
    given.run(0, seed, {static_cast<double>(24 + seed % 3) / 26});
    given.run(1, seed, {static_cast<double>(23 + seed % 3) / 26});
  }
  CHECK(given.summary().conclusion ==
        "Compared with base, of 1 arm it is not known whether it differs: the difference is the same with "
        "each seed, and its spread is not known.");
  CHECK(summaryCells(given.c, given.summary(), Detail::Brief)[2][2] == "-3.85");
  CHECK_CONTAINS(given.c.text(500), "The test data have 26 examples: one of them is worth 3.85 points.\n");
  given.c.grid.testExamples = 1000;
  CHECK_LACKS(given.c.text(500), "is worth");

  Given same({"base", "v1"});  // without any difference
  for (std::int64_t seed = 1; seed <= 2; ++seed)
    for (const std::size_t arm : {0, 1}) same.run(arm, seed, {0.9});
  CHECK(same.summary().conclusion ==
        "Compared with base, of 1 arm it is not known whether it differs: the difference is the same with "
        "each seed, and its spread is not known.");
}

TEST_CASE("a warning says that no arm is better than one answer for all, and a note which are not") {
  Given given({"base", "other", "wild"});
  for (std::int64_t seed = 1; seed <= 3; ++seed) {
    given.run(0, seed, {0.5 + 0.01 * static_cast<double>(seed)}).guess = "it was said";
    auto& other = given.run(1, seed, {0.5});
    if (seed > 1) other.guess = "it was said of other";
    given.run(2, seed, {}).failure = "nan";
  }
  CHECK(given.arm("base").guesses.count == 3);
  CHECK(given.arm("other").guesses.first == "it was said of other");
  CHECK(given.arm("other").guessed());
  CHECK_FALSE(given.arm("wild").guessed());
  CHECK(
      given.summary().conclusion.starts_with("No arm is clearly better than one answer for all examples, as "
                                             "in a run of base: it was said. No arm "));
  const auto note = "Not clearly better than one answer for all examples";
  CHECK_LACKS(given.c.text(500), note);
  auto untrained = given;
  untrained.c.runs[2].clear();
  CHECK(untrained.summary().conclusion.starts_with("No arm differs from base "));
  given.c.runs[1][1].guess.clear();  // of three runs one is left
  CHECK_FALSE(given.arm("other").guessed());
  CHECK(given.summary().conclusion.starts_with("No arm differs from base "));
  CHECK_CONTAINS(given.c.text(500), std::string(note) + ", the commonest class or the mean: base.\n");
  given.c.grid.seeds = {1};
  for (const std::size_t arm : {0, 1}) given.c.runs[arm].resize(1);
  given.c.runs[1][0].guess = "again";
  CHECK_CONTAINS(given.summary().conclusion, "it was said. One seed: ");
}

TEST_CASE(
    "a run of an earlier version, which did not look for one answer for all, does not count as learnt") {
  Given given({"base"});
  given.run(0, 1, {0.5});
  auto earlier = toJson(given.c.runs[0][0]);
  const std::string field = R"("guess": "", )";
  REQUIRE(test::contains(earlier, field));
  earlier.erase(earlier.find(field), field.size());
  const auto read = runFromJson(earlier);
  CHECK(toJson(read) == earlier);
  given.c.runs[0] = {read, read};
  given.run(0, 3, {0.5}).guess = "it was said";
  CHECK(given.arm("base").guesses.judged == 1);
  CHECK(given.arm("base").guessed());
}

TEST_CASE("arms that diverged in each run are named with the reason, and leave no target") {
  Given given({"base", "wild", "same"});
  for (std::int64_t seed = 1; seed <= 3; ++seed) {
    given.run(0, seed, {0.9});
    given.run(1, seed, {}).failure = "the score of seed " + std::to_string(seed) + " is nan";
    given.run(2, seed, {seed == 2 ? 0.8 : 0.95});
  }
  CHECK(given.summary().conclusion ==
        "No arm differs from base by more than chance would explain (95 % intervals of Student's t); wild "
        "diverged in each run.");
  const test::TemporaryDirectory directory;
  given.c.writeReport(directory / "out");
  CHECK_CONTAINS(test::readFile(directory / "out/report.html"),
                 "wild: 3 of 3 runs diverged, the first: the score of seed 1 is nan.");

  given.c.baseline = "wild";
  CHECK(given.summary().conclusion ==
        "Compared with wild, of 2 arms it is not known whether they differ: fewer than two seeds have a "
        "finished run of both; wild diverged in each run.");

  for (const std::size_t arm : {0, 2})
    for (auto& run : given.c.runs[arm]) run.failure = "nan";
  const auto text = given.c.text(500);
  CHECK_CONTAINS(text, "  samples to the target  seconds to the target  ");
  CHECK_CONTAINS(text, "No target: no arm has finished without a run that diverged.\n");
  CHECK_LACKS(text, "0 %,");
  CHECK(given.summary().conclusion == "Every arm diverged in each run.");
}

TEST_CASE("without an arm that finished with every seed there is no target to reach") {
  Given given({"base", "other"});
  for (const std::size_t arm : {0, 1}) {
    given.run(arm, 1, {0.9, 0.95});
    given.run(arm, 2, {}).failure = "nan";
  }
  CHECK(std::isnan(given.summary().target));
  CHECK(given.arm("other").target.reached == 0);
  CHECK(summaryCells(given.c, given.summary(), Detail::Brief)[2][3] == "-");
}

TEST_CASE("a report replaces an earlier one as a whole, and no other files") {
  const test::TemporaryDirectory directory;
  Given large({"base", "other"});
  large.c.link = NetworkLink{.bytesPerSecond = 1e9};
  for (std::int64_t seed = 1; seed <= 2; ++seed)
    for (const std::size_t arm : {0, 1}) large.run(arm, seed, {0.5, 0.6 + 0.1 * static_cast<double>(seed)});
  large.c.writeReport(directory / "out");
  test::writeFile(directory / "out/plots/mine.svg", "mine");
  for (const char* name :
       {"plots/differences.svg", "plots/distance.csv", "plots/projected-speed.svg", "tables/link.csv"})
    CHECK(std::filesystem::exists(directory / "out" / name));
  Given small({"base"});
  small.run(0, 1, {0.5});
  small.c.writeReport(directory / "out");
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory / "out"))
    if (entry.is_regular_file()) files.insert(entry.path().filename().string());
  CHECK(files == std::set<std::string>{"arms.csv", "mine.svg", "report.html", "table.md"});
}

TEST_CASE(
    "a report without title and remarks has no empty sentences, and names a place that it cannot write") {
  const test::TemporaryDirectory directory;
  Given given({"base"});
  given.run(0, 1, {0.5});
  given.c.title.clear();
  given.c.writeReport(directory / "out");
  const auto page = test::readFile(directory / "out/report.html");
  CHECK_CONTAINS(page, "<h1>1 arm</h1>\n");
  CHECK_LACKS(page, "<p class=\"note\"></p>");
  CHECK(test::readFile(directory / "out/table.md").starts_with("| arm |"));
  const auto file = directory / "out/report.html";
  CHECK(test::thrown<FileError>([&] {
          given.c.writeReport(file);
        }).starts_with((file / "plots").string() + ": cannot be made: "));
}

}  // namespace
}  // namespace muster
