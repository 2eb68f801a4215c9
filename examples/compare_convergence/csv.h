#pragma once

#include <string>

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

}  // namespace convergence
