#include "muster/core/comparison/comparison.h"

#include "muster/core/comparison/detail/tables.h"
#include "tests/core/comparison/given.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using doctest::Approx;
using muster::detail::Detail;

const std::string kNotKnown = "Compared with base, of 1 arm it is not known whether it differs: ";

/// Cells of the table of arms.
std::vector<std::vector<std::string>> cellsOf(const Given& given, Detail much = Detail::Brief) {
  return summaryCells(given.c, given.summary(), much);
}

/// The error of a call.
template <typename Call>
std::string refusal(Call&& call) {
  const auto text = thrown<InvalidArgument>(call);
  return text.starts_with("comparison: ") ? text.substr(12) : text;
}

TEST_CASE("an arm is summarised over its seeds") {
  Given given({"averaging"});
  given.run(0, 1, {0.5, 0.9, 0.8}, 1);
  given.run(0, 2, {0.4, 0.7, 0.9}, 2);
  given.c.target = 0.9;
  const auto arm = given.arm("averaging");
  CHECK(textOf(arm.runs, arm.failures) == "2 0");
  CHECK(digitsOf(6, arm.score.mean, arm.score.deviation) == digitsOf(6, 0.85, 0.1 / std::sqrt(2.)));
  // Seed 1 reaches the target at its second test, although it falls below it again; seed 2 at its third.
  CHECK(textOf(arm.target.reached, arm.target.samples.mean, arm.target.seconds.mean) == "2 250 4");
  // Of the computing of 3 s and 6 s, two thirds and all.
  CHECK(digitsOf(6, arm.target.cost.computeSeconds, arm.target.cost.rounds, arm.target.cost.bytes) ==
        "4 2.5 125");
  CHECK(textOf(arm.seconds.mean, arm.bytes.mean, arm.distance.mean) == "4.5 150 1");
  CHECK(textOf(arm.cost.rounds, arm.cost.computeSeconds, arm.samples) == "3 4.5 300");
  // 300 samples of two workers are 150 of one: eight do 1200 of them in 2 s.
  CHECK(samplesPerSecond(arm, {.workers = 8, .seconds = 2}) == 600);
  CHECK(textOf(given.c.planned(), given.c.finished()) == "3 2");  // three seeds
}

TEST_CASE("arms are sorted, and differ by pairs of seeds with Student's interval") {
  Given given({"base", "other", "better"});
  const double scores[][3] = {{0.90, 0.92, 0.95}, {0.92, 0.93, 0.97}, {0.93, 0.97, 0.985}};  // by seed
  for (std::int64_t seed = 1; seed <= 3; ++seed)
    for (const std::size_t arm : {0, 1, 2}) given.run(arm, seed, {scores[seed - 1][arm]});
  // Differences 0.02, 0.01 and 0.04: mean 0.02333, deviation 0.015275, margin 4.303 x 0.015275 / sqrt(3). Two
  // standard errors, 0.0176, would leave out 0, although 5 % of such intervals of equal arms should.
  const auto d = given.arm("other").difference;
  CHECK(d.mean == Approx(0.023333).epsilon(1e-4));
  CHECK(d.margin() == Approx(0.037946).epsilon(1e-3));
  CHECK_FALSE(d.differsFromZero());
  CHECK(given.summary().arms.front().name + " " + given.summary().arms.back().name == "better base");
  // 0.05, 0.05 and 0.055: mean 0.05167, deviation 0.0028868, margin 0.0071717.
  CHECK(given.summary().conclusion ==
        "Better than base: better by 5.17 points (95 % interval 4.45 to 5.88, 3 seeds); of 1 arm it is not "
        "known whether it differs.");
  given.c.baseline = "better";
  CHECK(given.arm("base").difference.mean == Approx(-0.051667).epsilon(1e-4));
  CHECK(given.summary().conclusion.starts_with(
      "No arm is better than better. Worse: base by 5.17 points (95 % interval 4.45 to 5.88, 3 seeds)"));
  const auto cells = cellsOf(given);
  CHECK(textOf(cells[1][2], cells[3][0], cells[3][2]) == "baseline base -5.17 [-5.88, -4.45]");
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
  CHECK(few.summary().conclusion == kNotKnown + "fewer than two seeds have a finished run of both.");
}

TEST_CASE("more than half of the arms reach the target with every seed; a failed arm does not lower it") {
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
  CHECK(textOf(given.arm("fair").target.reached, given.arm("bad").target.reached) == "2 0");
  given.c.target = 0.98;
  CHECK(given.arm("fair").target.reached == 0);
}

TEST_CASE(
    "speed-up is the geometric mean of the baseline's times to the target by the arm's, if all reach it") {
  Given given({"base", "fast"});
  given.c.target = 0.9;
  given.run(0, 1, {0.1, 0.1, 0.9}, 2);
  given.run(1, 1, {0.1, 0.9}, 1);
  CHECK(given.arm("fast").speedUp() == Approx(3));  // 6 s by 2 s
  given.run(0, 2, {0.9});
  given.run(1, 2, {0.9});
  // 3 and 1: their geometric mean is sqrt(3), and their logarithms' deviation ln(3) / sqrt(2).
  CHECK(given.arm("fast").speedUp() == Approx(std::sqrt(3.)));
  CHECK(cellsOf(given, Detail::Full)[2][6] == "1.73 ×/÷ 2.17");
  given.run(0, 3, {0.9});
  given.run(1, 3, {0.1, 0.8});
  CHECK(std::isnan(given.arm("fast").speedUp()));
}

TEST_CASE("a failed run enters no mean, and marks tell of crowded cores and of load") {
  Given given({"averaging"});
  given.run(0, 1, {0.5, 0.9});
  given.run(0, 2, {0.1}).failure = "the score is nan";
  const auto arm = given.arm("averaging");
  CHECK(textOf(arm.runs, arm.failures, arm.score.count) == "2 1 1");
  auto cells = cellsOf(given, Detail::Full);
  CHECK(cells[1][1] == "90.00 (1 of 2 diverged)");
  CHECK_LACKS(cells[1][5], "*");
  auto& crowded = given.run(0, 3, {0.9});
  crowded.threads = 4;
  crowded.loaded = true;
  crowded.othersBusy = 1.26;
  cells = cellsOf(given, Detail::Full);
  CHECK(cells[1][5].ends_with(" *!"));
  const auto notes = summaryNotes(given.c, given.summary(), Detail::Brief);
  CHECK(notes[notes.size() - 2].starts_with("* 4 threads shared 2 cores"));
  CHECK(notes.back().starts_with("! Measured under load: other programs kept up to 1.3 cores busy"));
}

TEST_CASE("runs are added by arm and seed, each once, and with one metric") {
  Comparison c;
  CHECK(refusal([&] { c.summarise(); }) == "it has no arm; add runs first");
  Given percent({"one"});
  percent.c.target = 97;
  CHECK(refusal([&] { percent.summary(); }) == "the target is a score of at most 1, not percent; got 97");
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
  CHECK(textOf(c.finished(), c.planned()) == "3 4");
  CHECK(refusal([&] { c.add(run("10", 2, 0.5)); }) == "\"10\" has a run with seed 2 already");
  auto other = run("10", 3, 0.5);
  other.metric = "accuracy";
  CHECK(refusal([&] { c.add(other); }) == "a run of \"10\" has the metric accuracy, and others have r2");
  const auto summary = c.summarise();
  const auto& best = summary.arms.front();
  CHECK(textOf(summary.baseline, summary.metric.name, best.name, best.difference.mean) == "1 R2 10 0.25");
  c.baseline = "11";
  CHECK(refusal([&] { c.text(); }) == "no arm is called \"11\", the baseline");
  Given more({"base"});
  more.run(0, 1, {0.5});
  more.c.runs.resize(2);
  CHECK(refusal([&] { more.summary(); }) == "there are runs of 2 arms, and the grid has 1");
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
  const auto lines = linesOf(given.c.text(40));  // four of the table; others may begin with two spaces
  for (std::size_t i = 4; i < lines.size(); ++i) CHECK(lines[i].size() <= 40 + 2);
}

TEST_CASE("a report is a page, a table and a file for each table and plot") {
  const TemporaryDirectory directory;
  Given given({"base", "other"});
  for (std::int64_t seed = 1; seed <= 2; ++seed) {
    given.run(0, seed, {0.5, 0.9});
    given.run(1, seed, {0.5, 0.75});
  }
  given.c.restoresBest = true;
  given.c.writeReport(directory / "out");
  const auto read = [&](const char* name) { return readFile(directory / "out" / name); };
  for (const char* part :
       {"<h1>run.json: 2 arms</h1>\n<p class=\"conclusion\">Not finished: 4 of 6 runs",
        "<li>base: <code>training.workers=2</code></li>",
        "by samples; the last point is of the best model, which early stopping has restored ("})
    CHECK_CONTAINS(read("report.html"), part);
  for (const char* part : {"| base | 90.00 ± 0.00 (n = 2) | baseline | ", "best one by the validation data"})
    CHECK_CONTAINS(read("table.md"), part);
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
  const auto same = kNotKnown + "the difference is the same with each seed, and its spread is not known.";
  CHECK(given.summary().conclusion == same);
  CHECK(cellsOf(given)[2][2] == "-3.85");
  CHECK_CONTAINS(given.c.text(500), "The test data have 26 examples: one of them is worth 3.85 points.\n");
  given.c.grid.testExamples = 1000;
  CHECK_LACKS(given.c.text(500), "is worth");
  Given equal({"base", "v1"});  // without any difference
  for (const std::int64_t seed : {1, 2})
    for (const std::size_t arm : {0, 1}) equal.run(arm, seed, {0.9});
  CHECK(equal.summary().conclusion == same);
}

TEST_CASE("a warning says that no arm is better than one answer for all, and a note which are not") {
  Given given({"base", "other", "wild"});
  for (std::int64_t seed = 1; seed <= 3; ++seed) {
    given.run(0, seed, {0.5 + 0.01 * static_cast<double>(seed)}).guess = "it was said";
    auto& other = given.run(1, seed, {0.5});
    if (seed > 1) other.guess = "it was said of other";
    given.run(2, seed, {}).failure = "nan";
  }
  CHECK(textOf(given.arm("base").guesses.count, given.arm("other").guesses.first,
               given.arm("other").guessed(),
               given.arm("wild").guessed()) == "3 it was said of other true false");
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

TEST_CASE("a run of an earlier version, which did not look for one answer, does not count as learnt") {
  Given given({"base"});
  given.run(0, 1, {0.5});
  auto earlier = toJson(given.c.runs[0][0]);
  const std::string field = R"("guess": "", )";
  REQUIRE(contains(earlier, field));
  earlier.erase(earlier.find(field), field.size());
  const auto read = runFromJson(earlier);
  CHECK(toJson(read) == earlier);
  given.c.runs[0] = {read, read};
  given.run(0, 3, {0.5}).guess = "it was said";
  CHECK(textOf(given.arm("base").guesses.judged, given.arm("base").guessed()) == "1 true");
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
  const TemporaryDirectory directory;
  given.c.writeReport(directory / "out");
  CHECK_CONTAINS(readFile(directory / "out/report.html"),
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
  CHECK(textOf(given.summary().target, given.arm("other").target.reached, cellsOf(given)[2][3]) == "nan 0 -");
}

TEST_CASE("a report replaces an earlier one as a whole, and no other files") {
  const TemporaryDirectory directory;
  Given large({"base", "other"});
  large.c.link = NetworkLink{.bytesPerSecond = 1e9};
  for (std::int64_t seed = 1; seed <= 2; ++seed)
    for (const std::size_t arm : {0, 1}) large.run(arm, seed, {0.5, 0.6 + 0.1 * static_cast<double>(seed)});
  large.c.writeReport(directory / "out");
  writeFile(directory / "out/plots/mine.svg", "mine");
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
  const TemporaryDirectory directory;
  Given given({"base"});
  given.run(0, 1, {0.5});
  given.c.title.clear();
  given.c.writeReport(directory / "out");
  const auto page = readFile(directory / "out/report.html");
  CHECK_CONTAINS(page, "<h1>1 arm</h1>\n");
  CHECK_LACKS(page, "<p class=\"note\"></p>");
  CHECK(readFile(directory / "out/table.md").starts_with("| arm |"));
  const auto file = directory / "out/report.html";
  CHECK_CONTAINS(thrown<FileError>([&] { given.c.writeReport(file); }),
                 (file / "plots").string() + ": cannot be made: ");
}

}  // namespace
}  // namespace muster::test
