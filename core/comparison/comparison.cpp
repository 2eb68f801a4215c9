#include "muster/core/comparison/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/comparison/detail/conclusion.h"
#include "muster/core/comparison/detail/plots.h"
#include "muster/core/comparison/detail/report_page.h"
#include "muster/core/comparison/detail/tables.h"
#include "muster/core/io/atomic_file.h"

namespace muster {
namespace {

std::string sentences(const std::vector<std::string>& all, std::size_t columns) {
  std::string text;
  for (const auto& one : all) text += wrappedText(one, columns);
  return text;
}

/// Whether each of these arms has tried the same choices.
bool sameChoices(const std::vector<TunedArm>& tuned) {
  const auto texts = [](const TunedArm& arm) {
    std::vector<std::string> all;
    for (const auto& choice : arm.choices) all.push_back(choice.text);
    return all;
  };
  return std::ranges::all_of(
      tuned, [&](const TunedArm& arm) { return !arm.choices.empty() && texts(arm) == texts(tuned.front()); });
}

/// How many choices each arm has tried, a sentence with a blank before it.
std::string choicesNote(const std::vector<TunedArm>& tuned) {
  std::string text = " Not alike, as an arm keeps a field that it sets itself, or lacks it: ";
  for (std::size_t i = 0; i < tuned.size(); ++i)
    text += fmt::format(
        "{}{} {}{}", i == 0 ? "" : ", ", tuned[i].arm, i == 0 ? "tried " : "",
        i == 0 ? plural(tuned[i].choices.size(), "choice") : fmt::format("{}", tuned[i].choices.size()));
  return text + ".";
}

std::string markdown(const Comparison& c, const ComparisonSummary& summary,
                     const std::vector<detail::ReportTable>& tables) {
  std::string text = c.paragraphs.empty() ? "" : fmt::format("{}\n\n", fmt::join(c.paragraphs, " "));
  for (const auto& table : tables)
    text += fmt::format("{}\n{}\n\n", markdownTable(table.rows), fmt::join(table.notes, " "));
  return text + summary.conclusion + "\n";
}

void makeDirectory(const std::filesystem::path& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (problem) throw FileError(directory, fmt::format("cannot be made: {}", problem.message()));
}

/// Removes files of an earlier report that this one does not have.
/// @param files  this one's.  @param names, endings  that any report's files have.
template <typename Files>
void removeOthers(const std::filesystem::path& directory, const Files& files,
                  std::span<const std::string_view> names, std::initializer_list<std::string_view> endings) {
  for (const auto name : names) {
    if (std::ranges::any_of(files, [&](const auto& file) { return file.name == name; })) continue;
    for (const auto ending : endings) {
      const auto path = directory / fmt::format("{}{}", name, ending);
      std::error_code problem;
      std::filesystem::remove(path, problem);
      if (problem) throw FileError(path, fmt::format("cannot be removed: {}", problem.message()));
    }
  }
}

}  // namespace

void Comparison::add(RunRecord run) {
  if (!run.failed()) {
    if (grid.metric.empty()) grid.metric = run.metric;
    require(run.metric == grid.metric, "comparison: a run of \"{}\" has the metric {}, and others have {}",
            run.arm, run.metric, grid.metric);
  }
  auto arm = std::ranges::find(grid.arms, run.arm, &ComparisonArm::name);
  if (arm == grid.arms.end()) arm = grid.arms.insert(arm, {run.arm, run.settings});
  runs.resize(grid.arms.size());
  auto& own = runs[static_cast<std::size_t>(arm - grid.arms.begin())];
  require(std::ranges::find(own, run.seed, &RunRecord::seed) == own.end(),
          "comparison: \"{}\" has a run with seed {} already", run.arm, run.seed);
  if (std::ranges::find(grid.seeds, run.seed) == grid.seeds.end()) grid.seeds.push_back(run.seed);
  own.push_back(std::move(run));
}

std::size_t Comparison::finished() const {
  std::size_t all = 0;
  for (const auto& arm : runs) all += arm.size();
  return all;
}

ComparisonSummary Comparison::summarise() const {
  require(!grid.arms.empty(), "comparison: it has no arm; add runs first");
  require(runs.size() <= grid.arms.size(), "comparison: there are runs of {} arms, and the grid has {}",
          runs.size(), grid.arms.size());
  require(!target || *target <= 1, "comparison: the target is a score of at most 1, not percent; got {}",
          target.value_or(0));
  const auto found =
      baseline.empty() ? grid.arms.begin() : std::ranges::find(grid.arms, baseline, &ComparisonArm::name);
  require(found != grid.arms.end(), "comparison: no arm is called \"{}\", the baseline", baseline);
  const auto first = static_cast<std::size_t>(found - grid.arms.begin());
  ComparisonSummary summary{.metric = ComparisonMetric::named(grid.metric),
                            .baseline = found->name,
                            .target = target.value_or(chooseTarget(runs)),
                            .arms = {},
                            .conclusion = {}};
  const auto runsOf = [&](std::size_t arm) {
    return arm < runs.size() ? std::span<const RunRecord>(runs[arm]) : std::span<const RunRecord>();
  };
  for (std::size_t i = 0; i < grid.arms.size(); ++i) {
    auto& arm = summary.arms.emplace_back(summariseArm(grid.arms[i].name, runsOf(i), summary.target));
    if (i != first) compareWith(runsOf(first), runsOf(i), summary.target, arm);
  }
  std::ranges::stable_sort(summary.arms, std::ranges::greater{}, [](const ArmSummary& arm) {
    return arm.trained() ? arm.score.mean : -std::numeric_limits<double>::infinity();
  });
  summary.conclusion = detail::conclusionOf(*this, summary);
  return summary;
}

std::string Comparison::text(std::size_t columns) const {
  using namespace detail;
  const auto summary = summarise();
  std::string text = textTable(summaryCells(*this, summary, Detail::Brief)) + "\n" +
                     sentences(summaryNotes(*this, summary, Detail::Brief), columns);
  if (const auto cells = tuningCells(*this); !cells.empty()) text += fmt::format("\n{}\n", textTable(cells));
  text += wrappedText(tuningNote(), columns);
  if (link)
    text += fmt::format("\nprojected on a link of {}:\n\n{}\n", linkText(*link),
                        textTable(linkCells(*this, summary, Detail::Brief))) +
            sentences(linkAssumptions(), columns);
  return text + "\n" + wrappedText(summary.conclusion, columns);
}

std::string Comparison::tuningNote() const {
  if (grid.tune.empty() && tuned.empty())
    return fmt::format(
        "Nothing was tuned: each arm ran with the options that all share and its own. An arm that needs "
        "another learning rate is at a disadvantage{}.",
        advice.tuning.empty() ? "" : "; " + advice.tuning);
  const bool same = sameChoices(tuned), all = tuned.size() >= grid.arms.size();
  return fmt::format(
      "Tuned{}: each arm trained once with each of its choices, with a seed of its own ({}), and the "
      "smallest loss on the validation data chose. The test data had no part in it.{}{}",
      same && all ? " alike" : "", kTuningSeed, same ? "" : choicesNote(tuned),
      std::ranges::any_of(tuned, &TunedArm::atEnd)
          ? " ^ The best choice is the smallest or the largest: others beyond it may be better."
          : "");
}

void Comparison::writeReport(const std::filesystem::path& directory) const {
  const auto summary = summarise();
  const auto tables = detail::tablesOf(*this, summary);
  const auto plots = detail::plotsOf(*this, summary);
  const auto write = [&](const std::filesystem::path& name, const std::string& text) {
    writeFileAtomically(directory / name, text);
  };
  makeDirectory(directory / "plots");
  makeDirectory(directory / "tables");
  removeOthers(directory / "tables", tables, detail::kTableNames, {".csv"});
  removeOthers(directory / "plots", plots, detail::kPlotNames, {".svg", ".csv"});
  for (const auto& table : tables) write("tables/" + table.name + ".csv", csvTable(table.rows));
  for (const auto& plot : plots) {
    write("plots/" + plot.name + ".svg", plot.svg);
    write("plots/" + plot.name + ".csv", csvTable(plot.values));
  }
  write("table.md", markdown(*this, summary, tables));
  write("report.html", detail::reportPage(*this, summary, tables, plots));
}

}  // namespace muster
