#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "examples/compare_convergence/comparison.h"
#include "examples/compare_convergence/recorder.h"

namespace convergence {

/// A row for each point of each run.
std::string pointsCsv(const Comparison& comparison);
/// A row for each arm.
std::string summaryCsv(const Comparison& comparison);
/// A row for each arm with several workers and number of workers projected to; only with a link.
std::string projectionCsv(const Comparison& comparison);
/// A row for each exchange of one run.
std::string mergesCsv(const std::vector<Merge>& merges);

/// A field as CSV has it: in quotes where it needs them. Source: RFC 4180.
std::string csvField(const std::string& text);

/// Finds out beforehand that results cannot be written into `directory`, or would replace files that are not
/// of this program: those with the names below, where there is no results.jsonl.
/// @throws muster::FileError.
void checkOutput(const std::filesystem::path& directory);

/// Writes points.csv, summary.csv, table.md, report.html and, with a link, projection.csv, each whole or not
/// at all; without a link there is no projection.csv any more.
/// @throws muster::FileError.
void writeComparison(const std::filesystem::path& directory, const Comparison& comparison);

/// Writes the exchanges of one run to `merges/`, where it had any. @throws muster::FileError.
void writeMerges(const std::filesystem::path& directory, const RunRecord& run,
                 const std::vector<Merge>& merges);

}  // namespace convergence
