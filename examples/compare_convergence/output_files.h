#pragma once

#include <filesystem>
#include <vector>

#include "examples/compare_convergence/comparison.h"
#include "examples/compare_convergence/recorder.h"
#include "examples/support/pages.h"

namespace convergence {

/// A run's curves for a page, with one point per test.
example::PageCurves curvesOf(const RunRecord& run, const Grid& grid);
/// The same, with the values of each merge if there are merges.
example::PageCurves curvesOf(const RunRecord& run, const Grid& grid, const std::vector<Merge>& merges);

/// Checks that results can be written into `directory` and would replace no foreign files: files with the
/// names below in a directory without results.jsonl.
/// @throws muster::FileError.
void checkOutput(const std::filesystem::path& directory);

/// Writes table.md and report.html, each atomically. @return false if this program was built without the
/// page, so there is no report. @throws muster::FileError.
bool writeComparison(const std::filesystem::path& directory, const Comparison& comparison);

/// Writes a run's file of curves into `runs/`, for `muster page`. @throws muster::FileError.
void writeRun(const std::filesystem::path& directory, const RunRecord& run, const Grid& grid,
              const std::vector<Merge>& merges);

}  // namespace convergence
