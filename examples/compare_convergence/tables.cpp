#include "examples/compare_convergence/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <variant>

#include "examples/compare_convergence/joined_batch.h"
#include "examples/compare_convergence/names.h"
#include "examples/support/number_text.h"
#include "muster/core/base/byte_text.h"
#include "muster/core/base/plural.h"
#include "muster/parallel/strategies/shared_gradients.h"

namespace convergence {
namespace {

constexpr const char* kNothing = "-";

/// For example ` on 2 cores`, or ` on 2 or 4 cores` for runs on several machines; "" without runs.
std::string coresText(const std::vector<RunRecord>& runs) {
  std::set<std::int64_t> cores;
  for (const auto& run : runs) cores.insert(run.cores);
  if (cores.empty()) return "";
  return fmt::format(" on {} core{}", fmt::join(cores, " or "), *cores.rbegin() == 1 ? "" : "s");
}

/// @param seeds  of the grid; the cell shows the number of runs if it is smaller.
std::string accuracyCell(const ArmSummary& arm, std::size_t seeds) {
  if (arm.runs == 0) return "not trained yet";
  if (arm.failures == arm.runs) return "diverged";
  const auto text = example::spreadText(arm.finalAccuracy, 100, 2);
  if (arm.failures > 0) return fmt::format("{} ({} of {} diverged)", text, arm.failures, arm.runs);
  return arm.runs < seeds ? fmt::format("{} (n = {})", text, arm.runs) : text;
}

std::string rangeCell(const ArmSummary& arm) {
  if (arm.finalAccuracy.count == 0) return kNothing;
  return fmt::format("{:.2f} to {:.2f}", arm.worstAccuracy * 100, arm.bestAccuracy * 100);
}

/// `text` if all seeds reached the target, else how many did.
std::string targetCell(const ArmSummary& arm, const std::string& text) {
  if (arm.runs == 0) return kNothing;
  if (arm.reachesTarget()) return text;
  if (arm.target.reached == 0) return "not reached";
  return fmt::format("{} of {} reached", arm.target.reached, arm.runs);
}

/// Seconds, marked if workers shared cores.
std::string secondsCell(const ArmSummary& arm, const example::Spread& seconds) {
  const int decimals = seconds.mean >= 100 ? 0 : seconds.mean >= 10 ? 1 : 2;
  return example::spreadText(seconds, 1, decimals) + (arm.oversubscribed ? " *" : "");
}

std::string samplesCell(const ArmSummary& arm) {
  const example::Spread& samples = arm.target.samples;
  const auto mean = example::groupedNumber(samples.mean);
  return samples.count < 2 ? mean : fmt::format("{} ± {}", mean, example::groupedNumber(samples.deviation));
}

bool hasMode(const Grid& grid, Mode mode) {
  return std::ranges::find(grid.arms, mode, &Arm::mode) != grid.arms.end();
}

std::string speedUpCell(const ArmSummary& arm) {
  if (arm.speedUp.count == 0) return kNothing;
  return fmt::format("{}{}", example::spreadText(arm.speedUp, 1, 2), arm.oversubscribed ? " *" : "");
}

std::vector<std::string> summaryRow(const ArmSummary& arm, const Grid& grid, Detail detail) {
  const bool trained = arm.finalAccuracy.count > 0;
  std::vector<std::string> row{arm.name, accuracyCell(arm, grid.seeds.size()),
                               targetCell(arm, samplesCell(arm)),
                               targetCell(arm, secondsCell(arm, arm.target.seconds))};
  if (hasMode(grid, Mode::Synchronous)) row.push_back(speedUpCell(arm));
  row.push_back(trained ? secondsCell(arm, arm.seconds) : kNothing);
  if (detail == Detail::Brief) return row;
  const bool several = trained && arm.arm.workers > 1;
  row.push_back(rangeCell(arm));
  row.push_back(several ? muster::byteText(arm.bytes.mean) : kNothing);
  row.push_back(several && arm.distance.mean > 0 ? fmt::format("{:.2g}", arm.distance.mean) : kNothing);
  return row;
}

/// Every finished run has resynchronised at its end, but earlier versions did not record it.
bool lacksResynchronisations(const RunRecord& run) {
  return run.arm.mode == Mode::Shared && !run.failed() && !run.points.empty() &&
         run.points.back().resynchronisations == 0;
}

/// States how many seeds the means cover.
std::string seedsNote(const Comparison& comparison) {
  const auto seeds = comparison.grid.seeds.size();
  if (seeds < 2) return "One seed only: nothing is known of the spread.";
  const bool all =
      std::ranges::all_of(comparison.arms, [&](const auto& arm) { return arm.finalAccuracy.count == seeds; });
  return fmt::format(
      "Means over {} seeds{} ± their standard deviation (n - 1). Accuracy is that of the merged model on the "
      "test images, at the end.",
      seeds, all ? "" : " (where n is given: over the n seeds that finished and did not diverge)");
}

/// The options of shared gradients, which are the library's defaults.
std::string sharedNote() {
  const muster::SharedGradients options;
  const auto& threshold = std::get<muster::AdaptiveThreshold>(options.thresholdAlgorithm);
  return fmt::format(
      "Shared gradients: {}, density {} to {}, resynchronised every {} iterations and at the end of each "
      "epoch. The last test follows the last resynchronisation, so the model includes all residuals.",
      options.describe(), threshold.minDensity, threshold.maxDensity, options.resynchronizationFrequency);
}

}  // namespace

example::Cells summaryCells(const Comparison& comparison, Detail detail) {
  const auto target = example::percentText(comparison.target);
  example::Cells rows{{"arm", "accuracy, %", "samples to " + target, "seconds to " + target}};
  if (hasMode(comparison.grid, Mode::Synchronous)) rows.front().push_back("speed-up");
  rows.front().push_back("seconds in all");
  if (detail == Detail::Full)
    rows.front().insert(rows.front().end(),
                        {"lowest to highest, %", "sent by a worker", "distance of replicas"});
  for (const auto& arm : comparison.arms) rows.push_back(summaryRow(arm, comparison.grid, detail));
  return rows;
}

example::Cells strategyCells(const Panel& panel, const Comparison& comparison) {
  const Grid& grid = comparison.grid;
  const auto seeds = grid.seeds.size();
  std::vector<std::string> strategies;
  std::vector<std::int64_t> frequencies;
  const auto note = [](auto& list, const auto& value) {
    if (std::ranges::find(list, value) == list.end()) list.push_back(value);
  };
  for (const auto index : panel.arms)
    if (const Arm& arm = grid.arms[index]; arm.mode == Mode::Strategy) {
      note(strategies, arm.strategy);
      note(frequencies, arm.frequency);
    }
  if (strategies.empty()) return {};
  example::Cells rows{{fmt::format("{}, accuracy in %", muster::plural(panel.workers, "worker"))}};
  for (const auto frequency : frequencies)
    rows.front().push_back(frequency > 0 ? fmt::format("every {}", frequency) : "no every=");
  const auto joined = joinedBatchArm(panel, grid);
  rows.push_back({shortArmName(grid.arms[joined])});
  rows.back().resize(frequencies.size() + 1, accuracyCell(comparison.arms[joined], seeds));
  for (const auto& strategy : strategies) {
    auto& row = rows.emplace_back(std::vector{strategy});
    for (const auto frequency : frequencies) {
      const auto index = std::ranges::find_if(panel.arms, [&](const auto i) {
        const Arm& arm = grid.arms[i];
        return arm.mode == Mode::Strategy && arm.strategy == strategy && arm.frequency == frequency;
      });
      row.push_back(index == panel.arms.end() ? "-" : accuracyCell(comparison.arms[*index], seeds));
    }
  }
  return rows;
}

std::vector<std::string> summaryNotes(const Comparison& comparison, Detail detail) {
  std::vector<std::string> notes;
  notes.push_back(seedsNote(comparison));
  notes.push_back(fmt::format(
      "Seconds are wall time of training{}, without the tests. An arm reaches {} at its first test with "
      "that accuracy. \"not reached\": no seed reached it. If only some seeds reach it, their number is "
      "given.",
      coresText(comparison.runs), example::percentText(comparison.target)));
  if (hasMode(comparison.grid, Mode::Synchronous))
    notes.push_back(
        "Speed-up: seconds to the target of synchronous training with the same workers, batch, updater and "
        "learning rate, divided by the arm's, seed by seed; \"-\" for one worker, and where one of the two "
        "did not reach the target with every seed.");
  if (hasMode(comparison.grid, Mode::Averaging))
    notes.push_back(
        "Measuring the replicas' distance is one more pass over the parameters at each merge of an averaging "
        "arm, and is in its seconds; the other arms do not pay for it.");
  if (hasMode(comparison.grid, Mode::Shared)) notes.push_back(sharedNote());
  if (comparison.link && std::ranges::any_of(comparison.runs, lacksResynchronisations))
    notes.push_back(
        "Some runs of shared gradients were recorded before resynchronisations were: in the projection all "
        "their bytes are messages, which is too slow. Train them in another --out.");
  if (detail == Detail::Full)
    notes.push_back(
        "Distance of the replicas from their mean before a merge, relative to the norm of the mean, averaged "
        "over the run; \"-\" where the replicas are equal. Sent: the payload a worker contributed to all "
        "merges.");
  std::int64_t cores = 0, workers = 0;
  for (const auto& run : comparison.runs)
    if (run.oversubscribed()) {
      cores = run.cores;
      workers = std::max(workers, run.arm.workers);
    }
  if (workers > 0)
    notes.push_back(
        fmt::format("* Oversubscribed: up to {} on {}. These wall times, and the computing "
                    "times of a projection, are not those of workers on cores of their own.",
                    muster::plural(workers, "worker"), muster::plural(cores, "core")));
  return notes;
}

example::Cells linkCells(const Comparison& comparison, Detail detail) {
  if (!comparison.link) return {};
  const auto workers = projectedWorkers(comparison.grid);
  example::Cells rows{
      {detail == Detail::Full ? "seconds (of them computing) with workers" : "seconds with workers"}};
  for (const auto count : workers) rows.front().push_back(fmt::format("{}", count));
  rows.front().push_back(fmt::format("own, to {}", example::percentText(comparison.target)));
  for (const auto& arm : comparison.arms) {
    if (arm.arm.mode == Mode::Single || arm.finalAccuracy.count == 0) continue;
    const auto cell = [&](const WorkerCost& cost, std::int64_t count) {
      const auto at = project(*comparison.link, arm.arm.mode, cost, count);
      const auto share =
          detail == Detail::Full ? fmt::format(" ({:.0f} %)", at.computingShare * 100) : std::string();
      return example::secondsDigits(at.seconds) + share;
    };
    auto& row = rows.emplace_back();
    row.push_back(arm.name + (arm.oversubscribed ? " *" : ""));
    for (const auto count : workers) row.push_back(cell(arm.cost, count));
    row.push_back(targetCell(arm, cell(arm.target.cost, arm.arm.workers)));
  }
  return rows;
}

}  // namespace convergence
