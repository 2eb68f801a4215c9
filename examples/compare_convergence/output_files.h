#pragma once

#include <filesystem>
#include <vector>

#include "examples/compare_convergence/comparison.h"
#include "examples/compare_convergence/recorder.h"
#include "examples/support/pages.h"

namespace convergence {

/// A run for a page, by its tests.
example::PageCurves curvesOf(const RunRecord& run, const Grid& grid);
/// With what each of its merges told, if it had any.
example::PageCurves curvesOf(const RunRecord& run, const Grid& grid, const std::vector<Merge>& merges);

/// Finds out beforehand that results cannot be written into `directory`, or would replace files that are not
/// of this program: those with the names below, where there is no results.jsonl.
/// @throws muster::FileError.
void checkOutput(const std::filesystem::path& directory);

/// Writes table.md and report.html, each whole or not at all. @return whether there is a report: not if this
/// program was built without the page. @throws muster::FileError.
bool writeComparison(const std::filesystem::path& directory, const Comparison& comparison);

/// Writes a run's file of curves below `runs/`, for `muster page`. @throws muster::FileError.
void writeRun(const std::filesystem::path& directory, const RunRecord& run, const Grid& grid,
              const std::vector<Merge>& merges);

}  // namespace convergence
