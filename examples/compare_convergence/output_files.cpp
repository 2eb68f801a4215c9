#include "examples/compare_convergence/output_files.h"

#include <fmt/format.h>

#include <system_error>

#include "examples/compare_convergence/csv.h"
#include "examples/compare_convergence/html_report.h"
#include "examples/compare_convergence/joined_batch.h"
#include "examples/compare_convergence/names.h"
#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"

namespace convergence {

void writeComparison(const std::filesystem::path& directory, const Comparison& comparison) {
  muster::writeFileAtomically(directory / "points.csv", pointsCsv(comparison));
  muster::writeFileAtomically(directory / "summary.csv", summaryCsv(comparison));
  muster::writeFileAtomically(directory / "table.md", joinedBatchMarkdown(comparison));
  if (comparison.link)
    muster::writeFileAtomically(directory / "projection.csv", projectionCsv(comparison));
  else
    std::filesystem::remove(directory / "projection.csv");  // one from before would be of other runs
  muster::writeFileAtomically(directory / "report.html", htmlReport(comparison));
}

void writeMerges(const std::filesystem::path& directory, const RunRecord& run,
                 const std::vector<Merge>& merges) {
  if (merges.empty()) return;
  const auto folder = directory / "merges";
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw muster::FileError(folder, fmt::format("cannot be made: {}", problem.message()));
  muster::writeFileAtomically(folder / (runFileName(run.arm, run.seed) + ".csv"), mergesCsv(merges));
}

}  // namespace convergence
