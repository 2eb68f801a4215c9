#pragma once

#include <string>
#include <vector>

#include "muster/core/base/text_table.h"
#include "muster/core/comparison/comparison.h"

namespace muster::detail {

/// How much a table shows: the columns that fit on a terminal, or all.
enum class Detail { Brief, Full };

/// Marks of wall times: `*` if threads shared cores, `!` if other programs kept cores busy.
std::string timeMarks(bool oversubscribed, bool loaded);
/// Whether a training was too short to know the load of others, so that it has no `!`.
bool hasUnknownLoad(const Comparison& comparison);

/// One row per arm, the best first: score, difference to the baseline, samples and time to the target, time;
/// with Detail::Full also speed-up, steps, bytes, distance, and the score with recomputed statistics, if any.
Cells summaryCells(const Comparison& comparison, const ComparisonSummary& summary, Detail detail);
/// A sentence for each mark and term that the table uses.
std::vector<std::string> summaryNotes(const Comparison& comparison, const ComparisonSummary& summary,
                                      Detail detail);

/// For each tuned arm: what was chosen, the validation loss of each choice, and what it cost. Empty without.
Cells tuningCells(const Comparison& comparison);

/// Projected seconds on `comparison.link` of each arm with several workers, by number of workers; with
/// Detail::Full also the share spent computing. Empty without a link.
Cells linkCells(const Comparison& comparison, const ComparisonSummary& summary, Detail detail);

}  // namespace muster::detail
