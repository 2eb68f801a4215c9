#include "muster/core/comparison/detail/plots.h"

#include "muster/core/comparison/detail/axis.h"
#include "muster/core/comparison/detail/report_page.h"
#include "tests/core/comparison/given.h"
#include "tests/support/test.h"

namespace muster::detail {
namespace {

using test::Given;

const Plot& named(const std::vector<Plot>& plots, const std::string& name) {
  const auto found = std::ranges::find(plots, name, &Plot::name);
  REQUIRE_MESSAGE(found != plots.end(), name);
  return *found;
}

std::set<std::string> namesOf(const std::vector<Plot>& plots) {
  std::set<std::string> names;
  for (const auto& plot : plots) names.insert(plot.name);
  return names;
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
  const auto narrow =
      Axis::of({0.22, 0.41}, Scale::Log, 0).ticks(4);  // no power of ten, and no 2 or 5 times one
  REQUIRE(narrow.size() == 4);
  CHECK(narrow.front() == doctest::Approx(0.25));
  CHECK(narrow.back() == doctest::Approx(0.4));
  CHECK(Axis::of({0.15, 0.41}, Scale::Log, 0).ticks(3).size() >= 2);
  CHECK(tickText(12000) == "12,000");
  CHECK(tickText(0.25) == "0.25");
}

TEST_CASE("accuracies are placed by the logarithm of their error") {
  const auto axis = Axis::of({0.9, 0.99}, Scale::Error, 0);
  CHECK(axis.place(0.9) == doctest::Approx(0));
  CHECK(axis.place(0.99) == doctest::Approx(1));
  CHECK(axis.place(1 - std::pow(10, -1.5)) == doctest::Approx(0.5));
  CHECK(axis.ticks(5) == std::vector<double>{0.9, 0.93, 0.95, 0.97, 0.98, 0.99});
}

TEST_CASE("an accuracy without errors is placed by half an example, and ticks do not overlap") {
  const auto axis = Axis::of({0.8, 1}, Scale::Error, 0, 0.5 / 26);
  CHECK(axis.place(1) == doctest::Approx(1));
  // ln(0.2 / (1/26)) / ln(0.2 / (0.5/26)): 25 of 26 right lie well below the top.
  CHECK(axis.place(25 / 26.) == doctest::Approx(std::log(5.2) / std::log(10.4)));
  CHECK(axis.ticks(7).back() == 1);
  const auto wide = Axis::of({0.1, 1}, Scale::Error, 0.04);  // five decades
  const auto ticks = wide.ticks(7);
  CHECK(ticks.size() >= 8);
  for (std::size_t i = 1; i < ticks.size(); ++i)
    CHECK(wide.place(ticks[i]) - wide.place(ticks[i - 1]) >= 0.05);
}

TEST_CASE("an axis of zeros spans one up and down") {
  const auto axis = Axis::of({0, 0}, Scale::Linear, 0.05);
  CHECK(axis.low == -1);
  CHECK(axis.high == 1);
  CHECK(axis.place(0) == 0.5);
}

TEST_CASE("all figures have a name of the list, by which a later report removes them") {
  Given given({"a", "c"});
  given.c.link = NetworkLink{.bytesPerSecond = 1e9};
  for (const std::int64_t seed : {1, 2})
    for (const std::size_t arm : {0, 1}) given.run(arm, seed, {0.5, 0.9});
  CHECK(namesOf(plotsOf(given.c, given.summary())) ==
        std::set<std::string>(std::begin(kPlotNames), std::end(kPlotNames)));
}

TEST_CASE("curves are drawn with their numbers, and a single test gives no column of dots") {
  Given given({"a <b>", "c"});
  for (std::int64_t seed = 1; seed <= 2; ++seed) {
    given.run(0, seed, {0.5, 0.6 + 0.1 * static_cast<double>(seed)});
    given.run(1, seed, {0.5, 0.9});
  }
  const auto plots = plotsOf(given.c, given.summary());
  const auto& scores = named(plots, "score-by-samples");
  CHECK_CONTAINS(scores.svg, "a &lt;b&gt;</text>");
  CHECK(scores.values[0] ==
        std::vector<std::string>{"arm", "samples trained, all workers", "low", "mean", "high"});
  // 0.7 and 0.8 after 200 samples: 0.75 +- 0.0707107.
  CHECK(scores.values[2] == std::vector<std::string>{"a <b>", "200", "0.6792893219", "0.75", "0.8207106781"});
  for (const char* name : {"differences", "score-by-bytes"}) CHECK(namesOf(plots).contains(name));
  const auto page = reportPage(given.c, given.summary(), tablesOf(given.c, given.summary()), plots);
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK_CONTAINS(page, "<title>muster</title>");
  CHECK_LACKS(page, "<b>");
  CHECK_CONTAINS(page, "plots/score-by-samples.svg");
  Given once({"a", "c"});
  for (std::int64_t seed = 1; seed <= 2; ++seed)
    for (const std::size_t arm : {0, 1}) once.run(arm, seed, {0.5 + 0.1 * static_cast<double>(seed)});
  const auto names = namesOf(plotsOf(once.c, once.summary()));
  CHECK((!names.contains("score-by-samples") && names.contains("differences")));
}

TEST_CASE("curves of wall times have the tables' marks, which a line explains; other curves have none") {
  Given given({"quiet", "loaded"});
  given.c.link = NetworkLink{.bytesPerSecond = 1e9};
  for (const std::size_t arm : {0, 1}) given.run(arm, 1, {0.5, 0.9});
  const auto plotOf = [&](const std::string& name) { return named(plotsOf(given.c, given.summary()), name); };
  for (const char* part : {"quiet !", "measured under load"})
    CHECK_LACKS(plotOf("score-by-seconds").svg, part);
  CHECK(plotOf("score-by-seconds").values.front().back() == "marks");
  given.c.runs[1][0].loaded = true;
  for (const auto* const name : {"score-by-seconds", "projected-speed"}) {
    CAPTURE(name);
    const auto plot = plotOf(name);
    for (const char* text : {"quiet", "loaded !", "! measured under load of other programs"})
      CHECK_CONTAINS(plot.svg, fmt::format(">{}</text>", text));
    for (const auto& row : plot.values)
      if (row != plot.values.front()) CHECK(row.back() == (row.front() == "loaded" ? "!" : ""));
  }
  CHECK_CONTAINS(plotOf("score-by-samples").svg, ">loaded</text>");
  CHECK(plotOf("score-by-samples").values.front().back() == "high");
  auto& brief = given.run(0, 2, {0.5, 0.9}, 0.2);
  brief.threads = 4;
  const auto plot = plotOf("score-by-seconds");
  CHECK_CONTAINS(plot.svg, ">quiet *</text>");
  CHECK_CONTAINS(plot.svg,
                 ">* threads shared cores; ! measured under load of other programs; load is not known, "
                 "and not marked, for less than 0.5 s</text>");
}

}  // namespace
}  // namespace muster::detail
