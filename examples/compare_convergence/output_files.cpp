#include "examples/compare_convergence/output_files.h"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "examples/compare_convergence/joined_batch.h"
#include "examples/compare_convergence/names.h"
#include "examples/compare_convergence/page_report.h"
#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"

namespace convergence {
namespace {

void add(example::PageCurves& curves, const char* name, std::int64_t iteration, double value) {
  curves.series[name].emplace_back(iteration, value);
}

constexpr const char *kResults = "results.jsonl", *kTable = "table.md", *kReport = "report.html",
                     *kLock = ".lock";  // of muster::DirectoryLock

/// The directory of the curves of an arm's runs.
std::filesystem::path directoryOf(const std::filesystem::path& directory, const Arm& arm) {
  return directory / "runs" / armFileName(arm);
}

std::string curvesName(std::int64_t seed) {
  return fmt::format("seed-{}.curves.jsonl", seed);
}

/// The names of an arm's files there. [seed]
std::vector<std::string> curvesNames(const Grid& grid) {
  std::vector<std::string> names;
  for (const auto seed : grid.seeds) names.push_back(curvesName(seed));
  return names;
}

}  // namespace

example::PageCurves curvesOf(const RunRecord& run, const Grid& grid) {
  example::PageCurves curves{.run = fmt::format("{}, seed {}", armName(run.arm, grid), run.seed),
                             .group = armName(run.arm, grid),
                             .failed = run.failure,
                             .series = {}};
  std::int64_t resynchronisations = 0;
  for (const auto& p : run.points) {
    const auto put = [&](const char* name, double value) { add(curves, name, p.iterations, value); };
    put("at/samples", static_cast<double>(p.samples));
    put("at/seconds", p.seconds);
    if (p.bytes > 0) put("at/bytes", static_cast<double>(p.bytes));
    put("score/merged", p.trainingLoss);
    put("test/accuracy", p.testAccuracy);
    put("test/loss", p.testLoss);
    if (measuresDistance(run.arm)) put("merge/divergence", p.distance);
    if (p.resynchronisations > resynchronisations) put("mark/resynchronisation", 1);
    resynchronisations = p.resynchronisations;
  }
  return curves;
}

example::PageCurves curvesOf(const RunRecord& run, const Grid& grid, const std::vector<Merge>& merges) {
  auto curves = curvesOf(run, grid);
  if (merges.empty()) return curves;
  // Replace the means between tests by the values of each merge.
  for (const char* name :
       {"at/samples", "at/seconds", "at/bytes", "score/merged", "merge/divergence", "mark/resynchronisation"})
    curves.series.erase(name);
  std::int64_t bytes = 0;
  for (const auto& m : merges) {
    const auto put = [&](const char* name, double value) { add(curves, name, m.iterations, value); };
    bytes += m.bytes;
    put("at/samples", static_cast<double>(m.samples));
    put("at/seconds", m.seconds);
    put("at/bytes", static_cast<double>(bytes));
    put("merge/bytes", static_cast<double>(m.bytes));
    put("score/merged", m.loss);
    if (measuresDistance(run.arm)) put("merge/divergence", m.distance);
    if (m.resynchronisation) {
      put("mark/resynchronisation", 1);
      put("merge/withheld, relative", m.drift);
    }
  }
  return curves;
}

void checkOutput(const std::filesystem::path& directory, const Grid& grid, example::Paths paths) {
  std::error_code unreachable;  // is found by `check`
  const bool ours = std::filesystem::exists(directory / kResults, unreachable);
  const auto add = [&](const std::filesystem::path& below, const std::vector<std::string>& names) {
    for (const auto& name : names)
      if (!ours && std::filesystem::exists(below / name, unreachable))
        throw muster::FileError(
            below / name, fmt::format("would be replaced, but there is no {}, as this program has it; give "
                                      "another --out",
                                      (directory / kResults).string()));
    paths.writesInto("--out", below, names);
  };
  add(directory, {kResults, kTable, kReport});
  paths.writesInto("--out", directory, {kLock});
  if (!example::curvesMark().empty())
    for (const auto& arm : grid.arms) add(directoryOf(directory, arm), curvesNames(grid));
  paths.check();
}

bool writeComparison(const std::filesystem::path& directory, const Comparison& comparison) {
  muster::writeFileAtomically(directory / kTable, joinedBatchMarkdown(comparison));
  const auto page = pageReport(comparison);
  if (!page.empty()) muster::writeFileAtomically(directory / kReport, page);
  return !page.empty();
}

void writeRun(const std::filesystem::path& directory, const RunRecord& run, const Grid& grid,
              const std::vector<Merge>& merges) {
  example::writeCurves(directoryOf(directory, run.arm) / curvesName(run.seed), curvesOf(run, grid, merges));
}

}  // namespace convergence
