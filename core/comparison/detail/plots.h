#pragma once

#include <string_view>
#include <vector>

#include "muster/core/comparison/comparison.h"
#include "muster/core/comparison/detail/figure.h"

namespace muster::detail {

/// The names that figures may have.
inline constexpr std::string_view kPlotNames[] = {"differences",    "score-by-samples", "score-by-seconds",
                                                  "score-by-bytes", "test-loss",        "training-loss",
                                                  "distance",       "projected-speed"};

/// The figures of a comparison: scores and losses by samples, time and bytes, the distance of the replicas,
/// the differences with their intervals, and the projected speed. What has no numbers is left out, and so are
/// curves of a single test, which would be dots.
std::vector<Plot> plotsOf(const Comparison& comparison, const ComparisonSummary& summary);

}  // namespace muster::detail
