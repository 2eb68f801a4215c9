#pragma once

#include "examples/compare_convergence/comparison.h"
#include "examples/support/number_text.h"
#include "examples/support/text_table.h"

namespace convergence {

/// The reference arm of a panel: one worker on the joined batch of W B examples, at the workers' learning
/// rate.
std::size_t joinedBatchArm(const Panel& panel, const Grid& grid);

/// @param run  a run that did not fail.
double finalAccuracy(const RunRecord& run);
double recomputedAccuracy(const RunRecord& run);

/// `value` of `arm` minus `value` of `reference` for each seed with which both arms finished.
example::Spread differenceTo(const Arm& reference, const Arm& arm, const std::vector<RunRecord>& runs,
                             double (*value)(const RunRecord&) = finalAccuracy);

/// The arms of a panel and one worker on the joined batch: learning rate, updates per worker, test accuracy
/// (mean ± standard deviation over the seeds), and the difference in percentage points ± two standard errors.
/// For networks with running statistics, also accuracy and difference after recomputing these statistics.
example::Cells joinedBatchCells(const Panel& panel, const Comparison& comparison);

/// Sentences that explain the numbers.
std::string joinedBatchNote(const Comparison& comparison);

/// All panels as tables in Markdown, for a README, with these sentences.
std::string joinedBatchMarkdown(const Comparison& comparison);

}  // namespace convergence
