#include "examples/compare_convergence/output_files.h"

#include <fmt/format.h>

#include <iterator>
#include <system_error>

#include "examples/compare_convergence/html_report.h"
#include "examples/compare_convergence/joined_batch.h"
#include "examples/compare_convergence/names.h"
#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/output_path.h"

namespace convergence {
namespace {

constexpr const char* kArmColumns =
    "arm,mode,workers,frequency,batch,updater,learning_rate,synchronous_until,strategy";

std::string armFields(const Arm& arm, const Grid& grid) {
  return fmt::format("{},{},{},{},{},{},{},{},{}", csvField(armName(arm, grid)), muster::nameOf(arm.mode),
                     arm.workers, arm.frequency, arm.batch, arm.updater, arm.learningRate,
                     arm.synchronousUntil, csvField(arm.strategy));
}

std::string numberField(double number) {
  return fmt::format("{}", number);
}

/// Mean and deviation; two empty fields where there is nothing.
std::string spreadFields(const example::Spread& spread) {
  return spread.count == 0 ? "," : fmt::format("{},{}", spread.mean, spread.deviation);
}

}  // namespace

std::string csvField(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string pointsCsv(const Comparison& comparison) {
  auto csv = fmt::format(
      "{},seed,samples,iterations,rounds,seconds,bytes_per_worker,training_loss,test_loss,test_accuracy,"
      "distance,oversubscribed\n",
      kArmColumns);
  for (const auto& run : comparison.runs)
    for (const auto& p : run.points)
      fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{},{},{},{},{}\n",
                     armFields(run.arm, comparison.grid), run.seed, p.samples, p.iterations, p.rounds,
                     p.seconds, p.bytes, p.trainingLoss, p.testLoss, p.testAccuracy,
                     measuresDistance(run.arm) ? numberField(p.distance) : "", run.oversubscribed());
  return csv;
}

std::string summaryCsv(const Comparison& comparison) {
  auto csv = fmt::format(
      "{},runs,failures,final_accuracy,final_accuracy_sd,lowest_accuracy,highest_accuracy,target,"
      "target_reached,samples_to_target,samples_to_target_sd,seconds_to_target,seconds_to_target_sd,"
      "speed_up,speed_up_sd,seconds,seconds_sd,bytes_per_worker,rounds,compute_seconds,distance,"
      "oversubscribed\n",
      kArmColumns);
  for (const auto& arm : comparison.arms) {
    const bool reached = arm.reachesTarget();
    // Empty where no seed came to an end.
    const auto ended = [&](double number) {
      return arm.finalAccuracy.count > 0 ? numberField(number) : std::string();
    };
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                   armFields(arm.arm, comparison.grid), arm.runs, arm.failures,
                   spreadFields(arm.finalAccuracy), ended(arm.worstAccuracy), ended(arm.bestAccuracy),
                   comparison.target, arm.target.reached,
                   spreadFields(reached ? arm.target.samples : example::Spread{}),
                   spreadFields(reached ? arm.target.seconds : example::Spread{}), spreadFields(arm.speedUp),
                   spreadFields(arm.seconds), ended(arm.bytes.mean), ended(arm.cost.exchanges),
                   ended(arm.cost.computeSeconds), measuresDistance(arm.arm) ? ended(arm.distance.mean) : "",
                   arm.oversubscribed);
  }
  return csv;
}

std::string projectionCsv(const Comparison& comparison) {
  auto csv = fmt::format("{},projected_workers,seconds,computing_share,samples_per_second,oversubscribed\n",
                         kArmColumns);
  if (!comparison.link) return csv;
  for (const auto& arm : comparison.arms) {
    if (arm.arm.mode == Mode::Single || arm.curve.empty()) continue;
    for (const auto workers : projectedWorkers(comparison.grid)) {
      const auto at = project(*comparison.link, arm.arm.mode, arm.cost, workers);
      fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{}\n", armFields(arm.arm, comparison.grid),
                     at.workers, at.seconds, at.computingShare, samplesPerSecond(arm, at),
                     arm.oversubscribed);
    }
  }
  return csv;
}

std::string mergesCsv(const std::vector<Merge>& merges) {
  std::string csv =
      "samples,iterations,seconds,training_loss,distance,bytes_per_worker,resynchronisation,drift\n";
  for (const auto& m : merges)
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{}\n", m.samples, m.iterations, m.seconds,
                   m.loss, m.distance, m.bytes, m.resynchronisation, m.drift);
  return csv;
}

void checkOutput(const std::filesystem::path& directory) {
  muster::checkOutputDirectory(directory);
  if (!std::filesystem::exists(directory)) return;
  const bool ours = std::filesystem::exists(directory / "results.jsonl");
  for (const char* name : {"points.csv", "summary.csv", "table.md", "projection.csv", "report.html"}) {
    if (!ours && std::filesystem::exists(directory / name))
      throw muster::FileError(
          directory / name,
          "would be replaced, but there is no results.jsonl beside it, as this program has "
          "it; give another --out");
    muster::checkOutputFile(directory / name);
  }
  muster::checkOutputFile(directory / "results.jsonl");
}

void writeComparison(const std::filesystem::path& directory, const Comparison& comparison) {
  muster::writeFileAtomically(directory / "points.csv", pointsCsv(comparison));
  muster::writeFileAtomically(directory / "summary.csv", summaryCsv(comparison));
  muster::writeFileAtomically(directory / "table.md", joinedBatchMarkdown(comparison));
  if (comparison.link)
    muster::writeFileAtomically(directory / "projection.csv", projectionCsv(comparison));
  else
    std::filesystem::remove(directory / "projection.csv");  // one from before would be of other runs
  muster::writeFileAtomically(directory / "report.html", htmlReport(comparison));
}

void writeMerges(const std::filesystem::path& directory, const RunRecord& run,
                 const std::vector<Merge>& merges) {
  if (merges.empty()) return;
  const auto folder = directory / "merges";
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw muster::FileError(folder, fmt::format("cannot be made: {}", problem.message()));
  muster::writeFileAtomically(folder / (runFileName(run.arm, run.seed) + ".csv"), mergesCsv(merges));
}

}  // namespace convergence
