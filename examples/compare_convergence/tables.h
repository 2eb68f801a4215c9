#pragma once

#include <string>
#include <vector>

#include "examples/compare_convergence/comparison.h"
#include "examples/support/text_table.h"

namespace convergence {

/// How much a table shows: the columns that fit on a terminal, or all.
enum class Detail { Brief, Full };

/// One row per arm: final accuracy, samples and time to the target, speed-up if there is a synchronous arm,
/// total time; with Detail::Full also the range over the seeds, bytes and distance.
example::Cells summaryCells(const Comparison& comparison, Detail detail);
/// A sentence for each mark and term that the table uses.
std::vector<std::string> summaryNotes(const Comparison& comparison, Detail detail);

/// Final accuracy of the strategies by name and of one worker on the joined batch: one row each, frequencies
/// as columns. Empty without such arms.
example::Cells strategyCells(const Panel& panel, const Comparison& comparison);

/// Projected seconds on `comparison.link` of each arm with several workers, by number of workers; with
/// Detail::Full also the share spent computing. Empty without a link.
example::Cells linkCells(const Comparison& comparison, Detail detail);

}  // namespace convergence
