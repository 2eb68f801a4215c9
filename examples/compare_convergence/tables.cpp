#include "examples/compare_convergence/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "examples/compare_convergence/number_text.h"

namespace convergence {
namespace {

constexpr const char* kNothing = "-";

/// As in ` on 2 cores`, or 4 as well where runs were made on several machines; nothing where there are none.
std::string coresText(const std::vector<RunRecord>& runs) {
  std::set<std::int64_t> cores;
  for (const auto& run : runs) cores.insert(run.cores);
  if (cores.empty()) return "";
  return fmt::format(" on {} core{}", fmt::join(cores, " or "), *cores.rbegin() == 1 ? "" : "s");
}

std::string accuracyCell(const ArmSummary& arm) {
  if (arm.runs == 0) return "not trained yet";
  if (arm.failures == arm.runs) return "diverged";
  const auto text = spreadText(arm.finalAccuracy, 100, 2);
  return arm.failures == 0 ? text : fmt::format("{} ({} of {} diverged)", text, arm.failures, arm.runs);
}

std::string rangeCell(const ArmSummary& arm) {
  if (arm.finalAccuracy.count == 0) return kNothing;
  return fmt::format("{:.2f} to {:.2f}", arm.worstAccuracy * 100, arm.bestAccuracy * 100);
}

/// `text` where all seeds reached the target.
std::string targetCell(const ArmSummary& arm, const std::string& text) {
  if (arm.runs == 0) return kNothing;
  if (arm.reachesTarget()) return text;
  if (arm.target.reached == 0) return "not reached";
  return fmt::format("{} of {} reached", arm.target.reached, arm.runs);
}

/// Seconds with a mark where the machine had too few cores.
std::string secondsCell(const ArmSummary& arm, const Spread& seconds) {
  const int decimals = seconds.mean >= 100 ? 0 : seconds.mean >= 10 ? 1 : 2;
  return spreadText(seconds, 1, decimals) + (arm.oversubscribed ? " *" : "");
}

std::string speedUpCell(const ArmSummary& arm) {
  if (arm.speedUp.count == 0) return kNothing;
  return fmt::format("{}{}", spreadText(arm.speedUp, 1, 2), arm.oversubscribed ? " *" : "");
}

std::vector<std::string> summaryRow(const ArmSummary& arm, Detail detail) {
  const bool trained = arm.finalAccuracy.count > 0;
  std::vector<std::string> row{arm.name,
                               accuracyCell(arm),
                               targetCell(arm, groupedNumber(arm.target.samples.mean)),
                               targetCell(arm, secondsCell(arm, arm.target.seconds)),
                               speedUpCell(arm),
                               trained ? secondsCell(arm, arm.seconds) : kNothing};
  if (detail == Detail::Brief) return row;
  const bool several = trained && arm.arm.workers > 1;
  row.push_back(rangeCell(arm));
  row.push_back(several ? byteText(arm.bytes.mean) : kNothing);
  row.push_back(several && arm.distance.mean > 0 ? fmt::format("{:.2g}", arm.distance.mean) : kNothing);
  return row;
}

}  // namespace

Cells summaryCells(const Comparison& comparison, Detail detail) {
  const auto target = percentText(comparison.target);
  Cells rows{
      {"arm", "accuracy, %", "samples to " + target, "seconds to " + target, "speed-up", "seconds in all"}};
  if (detail == Detail::Full)
    rows.front().insert(rows.front().end(),
                        {"lowest to highest, %", "sent by a worker", "distance of replicas"});
  for (const auto& arm : comparison.arms) rows.push_back(summaryRow(arm, detail));
  return rows;
}

std::vector<std::string> summaryNotes(const Comparison& comparison, Detail detail) {
  std::vector<std::string> notes;
  const auto seeds = comparison.grid.seeds.size();
  notes.push_back(seeds > 1
                      ? fmt::format("Means over {} seeds ± their standard deviation (n - 1). Accuracy is "
                                    "that of the merged model on the test images, at the end.",
                                    seeds)
                      : "One seed only: nothing is known of the spread.");
  notes.push_back(fmt::format(
      "Seconds are wall time of training{}, without the tests. An arm is at {} with the first test "
      "that has it; "
      "\"not reached\": no seed's run had it, and where only some had, their number is told.",
      coresText(comparison.runs), percentText(comparison.target)));
  notes.push_back(
      "Speed-up: seconds to the target of synchronous training with the same workers, batch, updater and "
      "learning rate, divided by the arm's, seed by seed.");
  if (detail == Detail::Full)
    notes.push_back(
        "Distance of the replicas from their mean before a merge, relative to the norm of the mean, averaged "
        "over the run; \"-\" where the replicas are equal. Sent: the payload a worker contributed to all "
        "exchanges.");
  std::int64_t cores = 0, workers = 0;
  for (const auto& run : comparison.runs)
    if (run.oversubscribed()) {
      cores = run.cores;
      workers = std::max(workers, run.arm.workers);
    }
  if (workers > 0)
    notes.push_back(
        fmt::format("* Oversubscribed: up to {} workers on {} core{}. These wall times, and the computing "
                    "times of a projection, are not those of workers on cores of their own.",
                    workers, cores, cores == 1 ? "" : "s"));
  return notes;
}

Cells linkCells(const Comparison& comparison, Detail detail) {
  if (!comparison.link) return {};
  const auto workers = projectedWorkers(comparison.grid);
  Cells rows{{detail == Detail::Full ? "seconds (of them computing) with workers" : "seconds with workers"}};
  for (const auto count : workers) rows.front().push_back(fmt::format("{}", count));
  rows.front().push_back(fmt::format("own, to {}", percentText(comparison.target)));
  for (const auto& arm : comparison.arms) {
    if (arm.arm.mode == Mode::Single || arm.finalAccuracy.count == 0) continue;
    const auto cell = [&](const WorkerCost& cost, std::int64_t count) {
      const auto at = project(*comparison.link, arm.arm.mode, cost, count);
      const auto share =
          detail == Detail::Full ? fmt::format(" ({:.0f} %)", at.computingShare * 100) : std::string();
      return secondsDigits(at.seconds) + share;
    };
    auto& row = rows.emplace_back();
    row.push_back(arm.name + (arm.oversubscribed ? " *" : ""));
    for (const auto count : workers) row.push_back(cell(arm.cost, count));
    row.push_back(targetCell(arm, cell(arm.target.cost, arm.arm.workers)));
  }
  return rows;
}

}  // namespace convergence
