#pragma once

#include <filesystem>
#include <vector>

#include "examples/compare_convergence/comparison.h"
#include "examples/compare_convergence/recorder.h"
#include "examples/support/pages.h"
#include "examples/support/paths.h"

namespace convergence {

/// A run's curves for a page, with one point per test.
example::PageCurves curvesOf(const RunRecord& run, const Grid& grid);
/// The same, with the values of each merge if there are merges.
example::PageCurves curvesOf(const RunRecord& run, const Grid& grid, const std::vector<Merge>& merges);

/// Checks that all files of a comparison can be written into `directory` and replace no foreign files: files
/// of their names in a directory without results.jsonl, or reports and curves that are not of these programs.
/// @param paths  the files of other options, which may not be among them.
/// @throws muster::FileError; InvalidArgument as Paths::check.
void checkOutput(const std::filesystem::path& directory, const Grid& grid, example::Paths paths = {});

/// Writes table.md and report.html, each atomically. @return false if this program was built without the
/// page, so there is no report. @throws muster::FileError.
bool writeComparison(const std::filesystem::path& directory, const Comparison& comparison);

/// Writes a run's file of curves into `runs/`, for `muster page`. @throws muster::FileError.
void writeRun(const std::filesystem::path& directory, const RunRecord& run, const Grid& grid,
              const std::vector<Merge>& merges);

}  // namespace convergence
