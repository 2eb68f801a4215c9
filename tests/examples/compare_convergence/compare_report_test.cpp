#include <doctest/doctest.h>

#include <boost/property_tree/xml_parser.hpp>
#include <limits>
#include <sstream>

#include "examples/compare_convergence/html_report.h"
#include "examples/compare_convergence/joined_batch.h"
#include "examples/compare_convergence/output_files.h"
#include "examples/compare_convergence/plots.h"
#include "examples/compare_convergence/tables.h"
#include "examples/support/svg_plot.h"

namespace convergence {
namespace {

using doctest::Approx;

/// @throws where it is not well-formed.
boost::property_tree::ptree parseXml(const std::string& text) {
  std::istringstream in(text);
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(in, tree);
  return tree;
}

std::size_t countOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<std::string> labelsOf(const example::PlotScale& scale) {
  std::vector<std::string> labels;
  for (const auto& tick : scale.ticks()) labels.push_back(tick.label);
  return labels;
}

TEST_CASE("axes have round numbers in their right places") {
  const example::PlotScale samples(example::ScaleKind::Linear, {6000, 60000});
  CHECK(labelsOf(samples) == std::vector<std::string>{"0", "20k", "40k", "60k"});
  CHECK(samples.at(0) == 0);
  CHECK(samples.at(15000) == Approx(0.25));
  CHECK(samples.at(60000) == 1);
  CHECK(samples.at(70000) == 1);

  CHECK(labelsOf(example::PlotScale(example::ScaleKind::Linear, {1, 2})) ==
        std::vector<std::string>{"0", "1", "2"});  // epochs come whole
  CHECK(labelsOf(example::PlotScale(example::ScaleKind::Linear, {0.5, 2})) ==
        std::vector<std::string>{"0", "0.5", "1", "1.5", "2"});

  const example::PlotScale bytes(example::ScaleKind::Log, {1e6, 1e9, 0, -1});
  CHECK(labelsOf(bytes) == std::vector<std::string>{"1M", "10M", "100M", "1G"});
  CHECK(bytes.at(std::sqrt(1e15)) == Approx(0.5));
  CHECK_FALSE(bytes.holds(0));
  CHECK(bytes.at(0) == 0);
  CHECK(labelsOf(example::PlotScale(example::ScaleKind::Log, {0.1, 0.4})) ==
        std::vector<std::string>{"0.1", "0.2"});
  CHECK(labelsOf(example::PlotScale(example::ScaleKind::Log, {2.2, 2.29})) ==
        std::vector<std::string>{"2.2", "2.4", "2.6"});

  const example::PlotScale accuracy(example::ScaleKind::Accuracy, {0.9, 0.99, 1});
  CHECK(labelsOf(accuracy) == std::vector<std::string>{"90 %", "95 %", "97 %", "98 %", "99 %", "99.5 %",
                                                       "99.8 %", "99.9 %", "99.95 %", "99.99 %"});
  CHECK(labelsOf(example::PlotScale(example::ScaleKind::Accuracy, {0.912, 0.938})) ==
        std::vector<std::string>{"91.5 %", "92 %", "92.5 %", "93 %", "93.5 %"});
  CHECK(accuracy.at(0.99) - accuracy.at(0.9) == Approx(accuracy.at(0.999) - accuracy.at(0.99)));
}

TEST_CASE("axes without values, or with one, can be drawn") {
  for (const auto kind : {example::ScaleKind::Linear, example::ScaleKind::Log, example::ScaleKind::Accuracy})
    for (const auto& values : {std::vector<double>{}, {0.5}, {0}, {1e-300, 1e300}}) {
      const example::PlotScale scale(kind, values);
      CHECK(scale.ticks().size() < 30);
      CHECK(scale.ticks().size() >= 2);
      for (const double value : {-1., 0., 0.5, 1e9, std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity()}) {
        CHECK(scale.at(value) >= 0);
        CHECK(scale.at(value) <= 1);
      }
    }
}

TEST_CASE("markup is escaped") {
  CHECK(example::escapeMarkup("a < b & \"c\" > d") == "a &lt; b &amp; &quot;c&quot; &gt; d");
}

TEST_CASE("a plot is well-formed, and draws what has a place") {
  example::Plot plot{.title = "a < b & \"c\"",
                     .x = {"samples", example::ScaleKind::Linear},
                     .y = {"loss", example::ScaleKind::Log},
                     .lines = {{"<one>", {"#112233", "3 2"}, {{1, 10, 9, 11}, {2, 5, -1, 6}, {3, 0, 0, 0}}},
                               {"none", {"#445566", ""}, {{1, 0, 0, 0}}},
                               {"dot", {"#778899", ""}, {{1, 7, 7, 7}}}},
                     .mark = 8};
  const auto svg = example::svgPlot(plot);
  const auto tree = parseXml(svg);
  CHECK(tree.get<std::string>("svg.<xmlattr>.aria-label") == plot.title);
  CHECK(countOf(svg, "<polyline") == 2);
  CHECK(countOf(svg, "<polygon") == 2);
  CHECK(countOf(svg, "<circle") == 3);  // two points of the first line, one of the last
  CHECK(countOf(svg, "class=\"mark\"") == 1);
  CHECK(svg.find(">8</text>") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("#445566") == std::string::npos);
  CHECK(svg.find("<title>&lt;one&gt;</title>") != std::string::npos);
  CHECK(svg.find("stroke-dasharray=\"3 2\"") != std::string::npos);
  const auto file = example::svgDocument(plot);
  const auto document = parseXml(file);
  CHECK(document.get<std::string>("svg.<xmlattr>.xmlns") == "http://www.w3.org/2000/svg");
  CHECK(document.get<std::string>("svg.title") == plot.title);
  CHECK(countOf(file, "<polyline") == 2);
  CHECK(file.find("&lt;one&gt;</text></svg>") ==
        std::string::npos);  // the legend has the other lines below it
  CHECK(countOf(file, "&lt;one&gt;</text>") == 1);
  parseXml(example::svgPlot({.title = "empty", .x = {}, .y = {}, .lines = {}, .mark = 1}));
  parseXml(example::svgSample({"#112233", "3 2"}));
}

/// Two panels over two seeds, of which one run is missing, and one failed.
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

TEST_CASE("the report is one well-formed page that needs nothing from elsewhere") {
  const Example example;
  const auto html = htmlReport(example.comparison);
  const auto tree = parseXml(html);
  CHECK(tree.get_child("html.body").count("h2") == 5);  // two panels, plots, link, options
  CHECK(tree.get<std::string>("html.body.p") == example.comparison.data);
  CHECK(countOf(html, "<figure>") == 2 * 8 + 2);
  for (const char* foreign : {"http", "src=", "href", "<script", "url(", "@import", "<link", "<img"})
    CHECK_MESSAGE(html.find(foreign) == std::string::npos, foreign);
  CHECK(html.find("Not finished: 17 of 18 runs so far.") != std::string::npos);
  CHECK(html.find("prefers-color-scheme: dark") != std::string::npos);
  CHECK(html.find("More workers than cores") != std::string::npos);
  CHECK(html.find("2 (W - 1) latency + 2 (W - 1) / W bytes / bandwidth") != std::string::npos);
  CHECK(html.find("Projected on a link of 10 Gbit/s, 50 us") != std::string::npos);
}

TEST_CASE("without a link nothing is projected, and a report of no runs can be written") {
  Example example;
  example.comparison.link.reset();
  CHECK(htmlReport(example.comparison).find("Projected") == std::string::npos);
  CHECK(linkCells(example.comparison, Detail::Full).empty());
  CHECK(countOf(projectionCsv(example.comparison), "\n") == 1);
  example.runs.clear();
  example.comparison.arms = summarise(example.grid, example.runs, 0.95);
  parseXml(htmlReport(example.comparison));
  const auto cells = summaryCells(example.comparison, Detail::Brief);
  CHECK(cells[1][1] == "not trained yet");
}

TEST_CASE("the lines of a panel can be told apart") {
  const Example example;
  const auto styles = stylesOf(example.grid.panels[1], example.grid);
  REQUIRE(styles.size() == 5);
  for (std::size_t i = 0; i < styles.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      CHECK((styles[i].colour != styles[j].colour || styles[i].dashes != styles[j].dashes));
}

TEST_CASE("the table tells what was reached, and marks what was oversubscribed") {
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
  CHECK(notes[0].starts_with("Means over 2 seeds, or over the n that are finished"));
  CHECK(notes[1].starts_with("Seconds are wall time of training on 2 cores, "));
  CHECK(notes.back().starts_with("* Oversubscribed: up to 4 workers on 2 cores."));

  example.comparison.target = 0.99;
  example.comparison.arms = summarise(example.grid, example.runs, 0.99);
  cells = summaryCells(example.comparison, Detail::Brief);
  CHECK(cells[1][2] == "not reached");
  CHECK(cells[1][3] == "not reached");
}

TEST_CASE("beside one worker on the joined batch: differences seed by seed, with two standard errors") {
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

TEST_CASE("beside one worker on the joined batch: with the running statistics recomputed") {
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

/// One arm of this mode, beside one worker.
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

TEST_CASE("the notes are of what the grid has") {
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

TEST_CASE("runs that do not tell their resynchronisations are told of beside a projection") {
  const Grid grid = gridOf(Mode::Shared);
  std::vector<RunRecord> runs{Example::runOf(grid.arms.back(), 1)};
  const Comparison comparison{.grid = grid, .runs = runs, .link = Link{1.25e9, 50e-6}};
  const auto last = [&] { return summaryNotes(comparison, Detail::Brief).back(); };
  CHECK(last().starts_with("Some runs of shared gradients were recorded before"));
  runs.front().points.back().resynchronisations = 1;
  CHECK(last().starts_with("Shared gradients: "));
}

TEST_CASE("what has nothing to draw is told in a sentence, and has no figure") {
  const Grid synchronous = gridOf(Mode::Synchronous);
  std::vector<RunRecord> runs;
  for (const auto& arm : synchronous.arms) runs.push_back(Example::runOf(arm, 1));
  Comparison comparison{.grid = synchronous, .runs = runs, .link = Link{1.25e9, 50e-6}};
  comparison.arms = summarise(synchronous, runs, 0.95);
  CHECK(countOf(htmlReport(comparison), "<figure>") == 7 + 1);  // no replica is apart
  for (auto& run : runs) run.failure = "the score is nan";
  comparison.arms = summarise(synchronous, runs, 0.95);
  const auto html = htmlReport(comparison);
  CHECK(countOf(html, "<figure>") == 0);
  CHECK(countOf(html, "Nothing to plot") == 1);
}

TEST_CASE("what a link would take, in the table") {
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

TEST_CASE("CSV files have a row for each point and each arm, of as many fields as the header") {
  const Example example;
  CHECK(csvField("plain") == "plain");
  CHECK(csvField("a,b") == "\"a,b\"");
  CHECK(csvField("a \"b\"") == "\"a \"\"b\"\"\"");
  const auto check = [](const std::string& csv, std::size_t rows) {
    CHECK(countOf(csv, "\n") == 1 + rows);
    std::istringstream in(csv);
    std::string line;
    std::getline(in, line);
    const auto commas = countOf(line, ",");
    while (std::getline(in, line)) {
      const auto quoted = line.find('"') == 0 ? line.find('"', 1) : 0;
      CHECK(countOf(line.substr(quoted), ",") == commas);
    }
  };
  check(pointsCsv(example.comparison), 17 * 3);
  check(summaryCsv(example.comparison), 9);
  check(projectionCsv(example.comparison), 6 * 10);
  check(mergesCsv({{100, 1, 0.5, 2.25, 0.01, 400}}), 1);
  const Arm arm{.mode = Mode::Averaging, .workers = 2};
  const Grid grid{.arms = {arm}, .panels = {}, .seeds = {1}};
  auto failed = Example::runOf(arm, 1);
  failed.failure = "the score is nan";
  const std::vector<RunRecord> runs{failed};
  const auto diverged =
      summaryCsv({.grid = grid, .runs = runs, .arms = summarise(grid, runs, 0.5), .target = 0.5});
  CHECK(diverged.ends_with(",1,1,,,,,0.5,0,,,,,,,,,,,,,false\n"));
  CHECK(mergesCsv({{100, 1, 0.5, 2.25, 0.01, 400}}).ends_with("\n100,1,0.5,2.25,0.01,400,false,0\n"));
}

}  // namespace
}  // namespace convergence
