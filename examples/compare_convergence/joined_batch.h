#pragma once

#include "examples/compare_convergence/comparison.h"
#include "examples/support/number_text.h"
#include "examples/support/text_table.h"

namespace convergence {

/// The arm of a panel that every other one is held against: one worker on the joined batch, W B examples at
/// the workers' learning rate.
std::size_t joinedBatchArm(const Panel& panel, const Grid& grid);

/// Of a run that has come to an end.
double finalAccuracy(const RunRecord& run);
double recomputedAccuracy(const RunRecord& run);

/// `value` of `arm` less that of `reference`, seed by seed, over the seeds that both came to an end with.
example::Spread differenceTo(const Arm& reference, const Arm& arm, const std::vector<RunRecord>& runs,
                             double (*value)(const RunRecord&) = finalAccuracy);

/// What the arms of a panel came to, beside one worker on the joined batch: learning rate, updates a worker,
/// test accuracy (mean ± standard deviation over the seeds), and the difference in points beside two of its
/// standard errors. For networks with running statistics also both with these recomputed.
example::Cells joinedBatchCells(const Panel& panel, const Comparison& comparison);

/// What its numbers are, in sentences.
std::string joinedBatchNote(const Comparison& comparison);

/// All panels as tables in Markdown, for a README, with the sentences that say what they show.
std::string joinedBatchMarkdown(const Comparison& comparison);

}  // namespace convergence
