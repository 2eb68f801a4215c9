#pragma once

#include <string>
#include <vector>

#include "examples/compare_convergence/comparison.h"
#include "examples/support/text_table.h"

namespace convergence {

/// How much a table tells: what fits on a terminal, or all.
enum class Detail { Brief, Full };

/// An arm a row: final accuracy, samples and time to the target, speed-up where there is a synchronous arm,
/// time; in full also the range over the seeds, bytes and distance.
example::Cells summaryCells(const Comparison& comparison, Detail detail);
/// What the table's marks and words mean, a sentence each; only those that it needs.
std::vector<std::string> summaryNotes(const Comparison& comparison, Detail detail);

/// Final accuracy of the strategies by name: one a row, beside one worker on the joined batch, frequencies as
/// columns. Empty without such arms.
example::Cells strategyCells(const Panel& panel, const Comparison& comparison);

/// Seconds that each arm with several workers would take on `comparison.link`, by workers; in full with the
/// share of them spent computing. Empty without a link.
example::Cells linkCells(const Comparison& comparison, Detail detail);

}  // namespace convergence
