#include "examples/compare_convergence/joined_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "examples/compare_convergence/names.h"
#include "examples/compare_convergence/tables.h"
#include "examples/support/number_text.h"
#include "muster/core/base/plural.h"

namespace convergence {
namespace {

constexpr const char* kNothing = "-";

/// Percentage points with a sign, ± two standard errors if there are several seeds.
std::string differenceText(const example::Spread& difference) {
  if (difference.count == 0) return kNothing;
  const auto mean = fmt::format("{:+.2f}", difference.mean * 100);
  if (difference.count < 2) return mean;
  const double error = difference.deviation / std::sqrt(static_cast<double>(difference.count));
  return fmt::format("{} ± {:.2f}", mean, 2 * error * 100);
}

/// Number of updates per worker in a whole training.
std::string updatesText(const Arm& arm, const std::vector<RunRecord>& runs) {
  for (const auto& run : runs)
    if (run.arm == arm && !run.failed() && !run.points.empty())
      return example::groupedNumber(static_cast<double>(run.points.back().iterations));
  return kNothing;
}

/// Spread of `value` over the runs of an arm that did not fail.
example::Spread spreadOver(const Arm& arm, const std::vector<RunRecord>& runs,
                           double (*value)(const RunRecord&)) {
  std::vector<double> values;
  for (const auto& run : runs)
    if (run.arm == arm && !run.failed() && !run.points.empty()) values.push_back(value(run));
  return example::spreadOf(values);
}

bool isRecomputed(const Comparison& comparison) {
  return std::ranges::any_of(comparison.runs,
                             [](const RunRecord& run) { return run.recomputedAccuracy >= 0; });
}

std::string accuracyText(const ArmSummary& arm) {
  if (arm.runs == 0) return "not trained yet";
  if (arm.finalAccuracy.count == 0) return "diverged";
  const auto text = example::spreadText(arm.finalAccuracy, 100, 2);
  return arm.failures > 0 ? fmt::format("{} ({} of {} diverged)", text, arm.failures, arm.runs) : text;
}

}  // namespace

std::size_t joinedBatchArm(const Panel& panel, const Grid& grid) {
  return *std::ranges::find_if(panel.arms, [&](std::size_t index) {
    const Arm& arm = grid.arms[index];
    return arm.mode == Mode::Single && arm.batch == panel.batch * panel.workers;
  });
}

double finalAccuracy(const RunRecord& run) {
  return run.points.back().testAccuracy;
}

double recomputedAccuracy(const RunRecord& run) {
  return run.recomputedAccuracy;
}

example::Spread differenceTo(const Arm& reference, const Arm& arm, const std::vector<RunRecord>& runs,
                             double (*value)(const RunRecord&)) {
  std::vector<double> differences;
  for (const auto& run : runs)
    for (const auto& other : runs) {
      const bool pair = run.arm == arm && other.arm == reference && run.seed == other.seed;
      if (!pair || run.failed() || other.failed() || run.points.empty() || other.points.empty()) continue;
      differences.push_back(value(run) - value(other));
    }
  return example::spreadOf(differences);
}

example::Cells joinedBatchCells(const Panel& panel, const Comparison& comparison) {
  const Grid& grid = comparison.grid;
  const Arm& joined = grid.arms[joinedBatchArm(panel, grid)];
  example::Cells rows{{"arm", "learning rate", "updates a worker", "accuracy, %",
                       fmt::format("beside one worker, batch {}, points", joined.batch)}};
  const bool recomputed = isRecomputed(comparison);
  if (recomputed) {
    rows.back().push_back("statistics recomputed: accuracy, %");
    rows.back().push_back("beside it, points");
  }
  for (const auto index : panel.arms) {
    const Arm& arm = grid.arms[index];
    const auto name = arm.mode == Mode::Single
                          ? shortArmName(arm)
                          : fmt::format("{}, batch {} each, {}", muster::plural(arm.workers, "worker"),
                                        arm.batch, shortArmName(arm));
    rows.push_back({name, fmt::format("{:.4g}", arm.learningRate), updatesText(arm, comparison.runs),
                    accuracyText(comparison.arms[index]),
                    arm == joined
                        ? kNothing
                        : differenceText(differenceTo(joined, arm, comparison.runs, finalAccuracy))});
    if (!recomputed) continue;
    const auto spread = spreadOver(arm, comparison.runs, recomputedAccuracy);
    rows.back().push_back(spread.count == 0 ? kNothing : example::spreadText(spread, 100, 2));
    rows.back().push_back(
        arm == joined ? kNothing
                      : differenceText(differenceTo(joined, arm, comparison.runs, recomputedAccuracy)));
  }
  return rows;
}

std::string joinedBatchNote(const Comparison& comparison) {
  const auto seeds = comparison.grid.seeds.size();
  if (seeds < 2) return "One seed only: nothing is known of the spread.";
  return fmt::format(
      "Accuracy: mean over {} seeds ± standard deviation (n - 1). Points: mean of the differences, seed by "
      "seed, ± two of their standard errors.{}",
      seeds,
      isRecomputed(comparison)
          ? " Recomputed: the running statistics of batch normalisation are those of the training images "
            "under the final parameters; after a short training at a high learning rate they lag behind."
          : "");
}

std::string joinedBatchMarkdown(const Comparison& comparison) {
  std::string text = fmt::format("{} {} {}\n", comparison.data, comparison.training, comparison.testing);
  for (const auto& panel : comparison.grid.panels)
    text += fmt::format("\n{}", example::markdownTable(joinedBatchCells(panel, comparison)));
  for (const auto& panel : comparison.grid.panels)
    if (const auto cells = strategyCells(panel, comparison); !cells.empty())
      text += fmt::format("\n{}", example::markdownTable(cells));
  return fmt::format("{}\n{}\n", text, joinedBatchNote(comparison));
}

}  // namespace convergence
