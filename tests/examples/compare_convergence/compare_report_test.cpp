#include <doctest/doctest.h>

#include <boost/json.hpp>

#include "examples/compare_convergence/joined_batch.h"
#include "examples/compare_convergence/output_files.h"
#include "examples/compare_convergence/page_report.h"
#include "examples/compare_convergence/tables.h"

namespace convergence {
namespace {

std::size_t countOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Two panels over two seeds; one run is missing, and one failed.
struct Example {
  Example() {
    grid = expandGrid({.modes = {Mode::Averaging, Mode::Synchronous},
                       .workers = {2, 4},
                       .frequencies = {1, 10},
                       .batches = {32},
                       .updaters = {{"nesterovs", 0.01}},
                       .scalings = {Scaling::None},
                       .synchronousUntil = {0},
                       .seeds = {1, 2}});
    for (const auto seed : grid.seeds)
      for (const auto& arm : grid.arms) runs.push_back(runOf(arm, seed));
    runs.pop_back();
    runs[4].failure = "the score is nan";
    comparison.arms = summarise(grid, runs, comparison.target);
    comparison.link = Link{1.25e9, 50e-6};
    comparison.data = "Data: <digits> & more.";
  }

  static RunRecord runOf(const Arm& arm, std::int64_t seed) {
    RunRecord run{.arm = arm, .seed = seed, .points = {}, .computeSeconds = 1, .cores = 2};
    const std::int64_t exchanged = arm.workers > 1 ? 1000000 : 0;
    for (std::int64_t n = 1; n < 4; ++n)
      run.points.push_back({1000 * n, n, n, 0.5 * static_cast<double>(n), exchanged * n, 1, 0.5,
                            0.9 + 0.02 * static_cast<double>(n), arm.frequency > 1 ? 0.01 : 0});
    return run;
  }

  Grid grid;
  std::vector<RunRecord> runs;
  Comparison comparison{.grid = grid, .runs = runs};
};

TEST_CASE("the report holds sentences, tables, panels and options beside the curves") {
  Example example;
  example.comparison.recipe = {"--target 95", "--out <here>"};
  const auto document = boost::json::parse(documentOf(example.comparison)).at("document").as_object();
  CHECK(document.at("paragraphs").at(0) == "Data: <digits> & more.");
  CHECK(document.at("warnings").at(0) == "Not finished: 17 of 18 runs so far.");
  CHECK(document.at("warnings").at(1).as_string().starts_with("More workers than cores"));
  CHECK(document.at("target") == 0.95);
  CHECK(document.at("options").at(1) == "--out <here>");
  const auto& panels = document.at("panels").as_array();
  REQUIRE(panels.size() == 2);
  CHECK(panels[0].at("groups").at(0) == "one worker, batch 32");
  CHECK(panels[0].at("groups").as_array().size() == 5);
  const auto& tables = document.at("tables").as_array();
  REQUIRE(tables.size() == 2);
  CHECK(tables[0].at("rows").as_array().size() == 1 + 9);
  CHECK(tables[0].at("rows").at(0).at("cells").at(1) == "accuracy, %");
  CHECK(tables[1].at("title") == "Projected on a link of 10 Gbit/s, 50 us");
  CHECK(boost::json::serialize(tables[1].at("notes"))
            .find("2 (W - 1) latency + 2 (W - 1) / W bytes / bandwidth") != std::string::npos);
}

TEST_CASE("a run's curves are its tests, with the numbers of each merge if they were recorded") {
  const Example example;
  const Arm& averaging = example.grid.arms[example.grid.panels[0].arms[3]];
  REQUIRE(averaging.frequency == 10);
  auto run = Example::runOf(averaging, 2);
  const auto curves = curvesOf(run, example.grid);
  CHECK(curves.run == "averaging every 10, 2 workers, seed 2");
  CHECK(curves.group == "averaging every 10, 2 workers");
  using Points = std::vector<std::pair<std::int64_t, double>>;
  CHECK(curves.series.at("at/samples") == Points{{1, 1000}, {2, 2000}, {3, 3000}});
  CHECK(curves.series.at("at/seconds") == Points{{1, 0.5}, {2, 1}, {3, 1.5}});
  CHECK(curves.series.at("at/bytes") == Points{{1, 1e6}, {2, 2e6}, {3, 3e6}});
  CHECK(curves.series.at("merge/divergence") == Points{{1, 0.01}, {2, 0.01}, {3, 0.01}});
  CHECK(curves.series.at("test/accuracy").size() == 3);
  CHECK_FALSE(curves.series.contains("mark/resynchronisation"));

  const auto more =
      curvesOf(run, example.grid, {{100, 1, 0.5, 2.25, 0.02, 400}, {200, 2, 0.6, 2, 0.03, 400, true, 0.5}});
  CHECK(more.series.at("at/bytes") == Points{{1, 400}, {2, 800}});
  CHECK(more.series.at("score/merged") == Points{{1, 2.25}, {2, 2}});
  CHECK(more.series.at("mark/resynchronisation") == Points{{2, 1}});
  CHECK(more.series.at("test/accuracy").size() == 3);

  // Two resynchronisations after the first test are one mark at the second.
  run.points[1].resynchronisations = run.points[2].resynchronisations = 2;
  CHECK(curvesOf(run, example.grid).series.at("mark/resynchronisation") == Points{{2, 1}});
  run.failure = "the score is nan";
  CHECK(curvesOf(run, example.grid).failed == "the score is nan");
}

TEST_CASE("the report is one file that loads nothing, and no text can end its script") {
  const Example example;
  const auto html = pageReport(example.comparison);
#ifdef MUSTER_WITH_PAGE
  CHECK(html.starts_with("<!DOCTYPE html>"));
  for (const char* foreign : {" src=", "<link rel=\"stylesheet", "@import", "<img", "url("})
    CHECK_MESSAGE(html.find(foreign) == std::string::npos, foreign);
  CHECK(html.find("default-src 'none'") != std::string::npos);
  CHECK(countOf(html, "<script") == 3);
  CHECK(html.find("<digits>") == std::string::npos);
  const auto begin = html.find("id=\"data\">") + 10;
  const auto news = boost::json::parse(html.substr(begin, html.find("</script>", begin) - begin)).as_array();
  CHECK(news.size() == 17 + 1);
  std::size_t projected = 0, failed = 0;
  for (const auto& one : news) {
    projected += boost::json::serialize(one).find("projection/samples per second") != std::string::npos;
    failed += one.as_object().contains("failed");
  }
  CHECK(projected == 6);  // arms with several workers
  CHECK(failed == 1);
#else
  CHECK(html.empty());
#endif
}

TEST_CASE("without a link there is no projection, and a report of no runs can be written") {
  Example example;
  example.comparison.link.reset();
  CHECK(documentOf(example.comparison).find("Projected") == std::string::npos);
  CHECK(pageReport(example.comparison).find("projection/samples per second\"") == std::string::npos);
  CHECK(linkCells(example.comparison, Detail::Full).empty());
  example.runs.clear();
  example.comparison.arms = summarise(example.grid, example.runs, 0.95);
  boost::json::parse(documentOf(example.comparison));
  const auto cells = summaryCells(example.comparison, Detail::Brief);
  CHECK(cells[1][1] == "not trained yet");
}

TEST_CASE("the table shows the results, and marks oversubscribed runs") {
  Example example;
  auto cells = summaryCells(example.comparison, Detail::Full);
  REQUIRE(cells.size() == 1 + 9);
  for (const auto& row : cells) CHECK(row.size() == cells[0].size());
  CHECK(cells[0][2] == "samples to 95 %");
  CHECK(cells[1] == std::vector<std::string>{"one worker, batch 32", "96.00 ± 0.00", "3,000 ± 0",
                                             "1.50 ± 0.00", "-", "1.50 ± 0.00", "96.00 to 96.00", "-", "-"});
  CHECK(cells[4][0] == "averaging every 10, 2 workers");
  CHECK(cells[4][4] == "-");  // the synchronous arm failed with one seed
  CHECK(cells[4][7] == "3 MB");
  CHECK(cells[4][8] == "0.01");
  CHECK(cells[5][1] == "96.00 (1 of 2 diverged)");
  CHECK(cells[5][2] == "1 of 2 reached");
  CHECK(cells[8][4] == "1.00 *");  // one seed of two
  CHECK(cells[8][5] == "1.50 ± 0.00 *");
  CHECK(cells[9][1] == "96.00 (n = 1)");
  const auto notes = summaryNotes(example.comparison, Detail::Brief);
  CHECK(notes[0].starts_with("Means over 2 seeds (where n is given: over the n seeds that finished"));
  CHECK(notes[1].starts_with("Seconds are wall time of training on 2 cores, "));
  CHECK(notes.back().starts_with("* Oversubscribed: up to 4 workers on 2 cores."));

  example.comparison.target = 0.99;
  example.comparison.arms = summarise(example.grid, example.runs, 0.99);
  cells = summaryCells(example.comparison, Detail::Brief);
  CHECK(cells[1][2] == "not reached");
  CHECK(cells[1][3] == "not reached");
}

TEST_CASE("the table compares with one worker on the joined batch, seed by seed, with two standard errors") {
  Example example;
  const Panel& panel = example.grid.panels[0];
  const Arm& joined = example.grid.arms[joinedBatchArm(panel, example.grid)];
  CHECK((joined.mode == Mode::Single));
  CHECK(joined.batch == 64);
  const Arm& averaging = example.grid.arms[panel.arms[2]];
  // Accuracies 0.96 and 0.96 of the joined batch; 0.95 and 0.98 of the arm: -1 and 2 points, whose mean is
  // 0.5, deviation 2.1213 and standard error 1.5.
  std::vector<double> accuracies{0.95, 0.98};
  for (auto& run : example.runs)
    if (run.arm == averaging) run.points.back().testAccuracy = accuracies[run.seed == 1 ? 0 : 1];
  example.comparison.arms = summarise(example.grid, example.runs, 0.95);
  const auto difference = differenceTo(joined, averaging, example.runs);
  CHECK(difference.count == 2);
  CHECK(difference.mean == doctest::Approx(0.005));
  const auto cells = joinedBatchCells(panel, example.comparison);
  CHECK(cells[0].back() == "beside one worker, batch 64, points");
  CHECK(cells[1] ==
        std::vector<std::string>{"one worker, batch 32", "0.01", "3", "96.00 ± 0.00", "+0.00 ± 0.00"});
  CHECK(cells[2].back() == "-");
  CHECK(cells[3] == std::vector<std::string>{"2 workers, batch 32 each, averaging every 1", "0.01", "3",
                                             "96.50 ± 2.12", "+0.50 ± 3.00"});
  CHECK(cells[5][3] == "96.00 (1 of 2 diverged)");
  CHECK(cells[5][4] == "+0.00");
  const auto markdown = joinedBatchMarkdown(example.comparison);
  CHECK(countOf(markdown, "|---|---|---|---|---|\n") == 2);
  CHECK(markdown.find(
            "| 2 workers, batch 32 each, averaging every 1 | 0.01 | 3 | 96.50 ± 2.12 | +0.50 ± 3.00 |\n") !=
        std::string::npos);
  CHECK(markdown.ends_with("± two of their standard errors.\n"));
}

TEST_CASE("the table compares with one worker on the joined batch, with recomputed running statistics") {
  Example example;
  const Panel& panel = example.grid.panels[0];
  const Arm& averaging = example.grid.arms[panel.arms[2]];
  for (auto& run : example.runs) run.recomputedAccuracy = run.arm == averaging ? 0.94 : 0.97;
  example.comparison.arms = summarise(example.grid, example.runs, 0.95);
  const auto cells = joinedBatchCells(panel, example.comparison);
  CHECK(cells[0][5] == "statistics recomputed: accuracy, %");
  CHECK(cells[0][6] == "beside it, points");
  CHECK(cells[2][5] == "97.00 ± 0.00");
  CHECK(cells[2][6] == "-");
  CHECK(cells[3][5] == "94.00 ± 0.00");
  CHECK(cells[3][6] == "-3.00 ± 0.00");
  CHECK(joinedBatchMarkdown(example.comparison).find("Recomputed: the running statistics") !=
        std::string::npos);
}

/// A grid with one arm of this mode and one worker.
Grid gridOf(Mode mode) {
  return expandGrid({.modes = {mode},
                     .workers = {2},
                     .frequencies = {10},
                     .batches = {32},
                     .updaters = {{"sgd", 0.01}},
                     .scalings = {Scaling::None},
                     .synchronousUntil = {0},
                     .seeds = {1}});
}

TEST_CASE("the notes explain only what the grid contains") {
  const auto notesOf = [](Mode mode) {
    const Grid grid = gridOf(mode);
    const std::vector<RunRecord> runs;
    const auto arms = summarise(grid, runs, 0.95);
    const Comparison comparison{.grid = grid, .runs = runs, .arms = arms};
    CHECK(summaryCells(comparison, Detail::Brief)[0].size() == (mode == Mode::Synchronous ? 6 : 5));
    std::string all;
    for (const auto& note : summaryNotes(comparison, Detail::Brief)) all += note + "\n";
    return all;
  };
  CHECK(countOf(notesOf(Mode::Synchronous), "Speed-up") == 1);
  CHECK(countOf(notesOf(Mode::Averaging), "Speed-up") == 0);
  CHECK(countOf(notesOf(Mode::Averaging), "Measuring the replicas' distance") == 1);
  const auto shared = notesOf(Mode::Shared);
  CHECK(countOf(shared, "Measuring the replicas' distance") == 0);
  CHECK(countOf(shared,
                "Shared gradients: adaptive threshold from 0.001, density 0.001 to 0.1, resynchronised every "
                "100 iterations and at the end of each epoch.") == 1);
}

TEST_CASE("a note names runs without counts of resynchronisations if a link is projected") {
  const Grid grid = gridOf(Mode::Shared);
  std::vector<RunRecord> runs{Example::runOf(grid.arms.back(), 1)};
  const Comparison comparison{.grid = grid, .runs = runs, .link = Link{1.25e9, 50e-6}};
  const auto last = [&] { return summaryNotes(comparison, Detail::Brief).back(); };
  CHECK(last().starts_with("Some runs of shared gradients were recorded before"));
  runs.front().points.back().resynchronisations = 1;
  CHECK(last().starts_with("Shared gradients: "));
}

TEST_CASE("the table shows the time that a link would take") {
  const Example example;
  const auto cells = linkCells(example.comparison, Detail::Brief);
  REQUIRE(cells.size() == 1 + 6);  // of the arms with several workers
  CHECK(cells[0][1] == "2");
  CHECK(cells[0][10] == "1024");
  // 1 s and three exchanges of 1 MB: 3 x (2 x 1023 x 50 us + 2 x 1023 / 1024 x 1 MB / 1.25 GB/s)
  CHECK(cells[1][10] == "1.31");
  CHECK(linkCells(example.comparison, Detail::Full)[1][10] == "1.31 (76 %)");
  // All of it, with two workers: 3 x (2 x 50 us + 1 MB / 1.25 GB/s)
  CHECK(cells[0][11] == "own, to 95 %");
  CHECK(cells[1][11] == "1.00");
  CHECK(cells[3][11] == "1 of 2 reached");
}

}  // namespace
}  // namespace convergence
