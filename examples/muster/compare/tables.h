#pragma once

#include <string>
#include <vector>

#include "examples/muster/compare/summary.h"
#include "examples/muster/compare/text_table.h"

namespace comparing {

/// How much a table shows: the columns that fit on a terminal, or all.
enum class Detail { Brief, Full };

/// One row per arm, the best first: score, difference to the baseline, samples and time to the target, time;
/// with Detail::Full also the range over the seeds, speed-up, steps, bytes and distance.
Cells summaryCells(const Comparison& comparison, Detail detail);
/// A sentence for each mark and term that the table uses.
std::vector<std::string> summaryNotes(const Comparison& comparison, Detail detail);

/// For each tuned arm: what was chosen, the validation loss of each choice, and what it cost. Empty without.
Cells tuningCells(const Comparison& comparison);
/// How the arms were tuned, or that they were not.
std::string tuningNote(const Comparison& comparison);

/// Projected seconds on `comparison.link` of each arm with several workers, by number of workers; with
/// Detail::Full also the share spent computing. Empty without a link.
Cells linkCells(const Comparison& comparison, Detail detail);

}  // namespace comparing
