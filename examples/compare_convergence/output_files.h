#pragma once

#include <filesystem>
#include <vector>

#include "examples/compare_convergence/comparison.h"
#include "examples/compare_convergence/recorder.h"

namespace convergence {

/// Writes points.csv, summary.csv, table.md, report.html and, with a link, projection.csv, each whole or not
/// at all; without a link there is no projection.csv any more.
/// @throws muster::FileError.
void writeComparison(const std::filesystem::path& directory, const Comparison& comparison);

/// Writes the exchanges of one run to `merges/`, where it had any. @throws muster::FileError.
void writeMerges(const std::filesystem::path& directory, const RunRecord& run,
                 const std::vector<Merge>& merges);

}  // namespace convergence
