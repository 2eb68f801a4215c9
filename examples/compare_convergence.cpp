// Compares model averaging with synchronous training over a grid of configurations and several seeds.
// `compare_convergence --help` lists the options.

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "examples/compare_convergence/arm_run.h"
#include "examples/compare_convergence/compare.h"
#include "examples/compare_convergence/grid.h"
#include "examples/compare_convergence/grid_progress.h"
#include "examples/compare_convergence/joined_batch.h"
#include "examples/compare_convergence/names.h"
#include "examples/compare_convergence/options.h"
#include "examples/compare_convergence/output_files.h"
#include "examples/compare_convergence/results_file.h"
#include "examples/compare_convergence/summary.h"
#include "examples/compare_convergence/tables.h"
#include "examples/support/command_line.h"
#include "examples/support/data_sets.h"
#include "examples/support/number_text.h"
#include "examples/support/program.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/plural.h"
#include "muster/core/listeners/watch/machine_text.h"
#include "muster/datasets/directory_lock.h"

using namespace convergence;

namespace {

Setting settingOf(const Options& options, const example::DataSets& data) {
  const auto examples = *data.train->examples();
  return {.trainingImages = data.train->set(),
          .testImages = data.test->set(),
          .trainingExamples = examples,
          .testExamples = *data.test->examples(),
          .epochs = options.epochs,
          .testEvery = options.testEvery.value_or(std::max<std::int64_t>(1, examples / 10)),
          .momentum = options.momentum,
          .l2 = options.l2,
          .model = options.model,
          .width = options.width,
          .cosine = options.learningRateSchedule == "cosine",
          .pinThreads = options.pinThreads,
          .watch = options.watch};
}

std::string networkTitle(const Options& options) {
  if (options.model == "mlp") return "a multilayer perceptron of 64 hidden units";
  if (options.model == "convnet") return "Deeplearning4j's acceptance test";
  return options.width == 64 ? "ResNet-18"
                             : fmt::format("ResNet-18 with {} channels in its first stage", options.width);
}

/// The comparison before its first run.
Comparison comparisonOf(const Options& options, const example::DataSets& data, const Setting& setting,
                        const Recipe& recipe, const Grid& grid, const std::vector<RunRecord>& runs) {
  const auto count = [](std::int64_t n) { return example::groupedNumber(static_cast<double>(n)); };
  const auto noun = [&](std::int64_t n, std::string_view one) {
    return fmt::format("{} {}{}", count(n), one, n == 1 ? "" : "s");
  };
  Comparison comparison{.grid = grid, .runs = runs, .target = options.target, .link = options.link};
  comparison.data = fmt::format("Data: {}, {} to train with and {} to test with.", data.title,
                                noun(setting.trainingExamples, "image"), count(setting.testExamples));
  comparison.origin = fmt::format("The images are from {}.", data.origin);
  comparison.training = fmt::format(
      "Every arm trains the same network ({}, {} parameters) on the same {}, {}, from the "
      "same first weights for a seed; each worker is one thread.",
      networkTitle(options), count(networkOf(grid.arms.front(), 0, setting)->parameterCount()),
      noun(setting.samples(), "sample"), muster::plural(setting.epochs, "epoch"));
  comparison.testing = setting.testEvery >= setting.samples()
                           ? "The merged model is tested at the end."
                           : fmt::format(
                                 "The merged model is tested at the first merge at or after each multiple of "
                                 "{}, and at the end.",
                                 noun(setting.testEvery, "sample"));
  for (const auto& [option, value] : recipe)
    comparison.recipe.push_back(fmt::format("--{} {}", option, value));
  comparison.recipe.push_back(fmt::format("--target {:.6g}", options.target * 100));
  if (options.link) comparison.recipe.push_back("--link " + options.linkText);
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  comparison.made = fmt::format("Written on {:%F} (UTC) by muster {}, on {}.", today, MUSTER_VERSION,
                                muster::processorName());
  return comparison;
}

void summariseInto(Comparison& comparison) {
  comparison.arms = summarise(comparison.grid, comparison.runs, comparison.target);
}

std::string lineOf(const RunRecord& run, const std::string& name) {
  if (run.failed()) return fmt::format("{}: diverged", name);
  const auto& end = run.points.back();
  return fmt::format("{}: {:.2f} % after {} samples in {} s", name, end.testAccuracy * 100,
                     example::groupedNumber(static_cast<double>(end.samples)),
                     example::secondsDigits(end.seconds));
}

/// Trains the runs that the results file lacks, and updates the other files after each run.
/// @return false if interrupted.
bool trainAll(const Setting& setting, const std::filesystem::path& out, Comparison& comparison,
              ResultsFile& results, const std::stop_token& stop) {
  const Grid& grid = comparison.grid;
  GridProgress progress(
      {.runs = grid.runs(), .finished = results.runs().size(), .samplesPerRun = setting.samples()});
  bool warm = false;
  // Train all arms with one seed before the next seed: then finished runs are comparable at any time.
  for (const auto seed : grid.seeds)
    for (const auto& arm : grid.arms) {
      if (results.find(arm, seed) != nullptr) continue;
      const auto name = fmt::format("{}, seed {}", armName(arm, grid), seed);
      if (!std::exchange(warm, true)) warmUp(arm, setting, stop);
      progress.begin(name);
      auto run = runArm(
          arm, seed, setting, [&](std::int64_t samples) { progress.advance(samples); }, stop);
      if (!run.finished) return false;
      results.add(run.record);  // first: if curves cannot be written, the run is not lost
      writeRun(out, run.record, grid, run.merges);
      const auto line = lineOf(run.record, name);
      summariseInto(comparison);
      writeComparison(out, comparison);
      progress.finish(line);
      if (stop.stop_requested() && !comparison.complete()) return false;
    }
  return true;
}

void printTables(const Comparison& comparison) {
  const auto printNotes = [](const std::vector<std::string>& notes) {
    for (const auto& note : notes) fmt::print("{}", example::wrapped(note, example::kLineLength));
  };
  fmt::print("\n{}\n", example::textTable(summaryCells(comparison, Detail::Brief)));
  printNotes(summaryNotes(comparison, Detail::Brief));
  for (const auto& panel : comparison.grid.panels)
    fmt::print("\n{}", example::textTable(joinedBatchCells(panel, comparison)));
  for (const auto& panel : comparison.grid.panels)
    if (const auto cells = strategyCells(panel, comparison); !cells.empty())
      fmt::print("\n{}", example::textTable(cells));
  fmt::print("{}", example::wrapped(joinedBatchNote(comparison), example::kLineLength));
  if (!comparison.link) return;
  fmt::print("\nprojected on a link of {}:\n\n{}\n", describe(*comparison.link),
             example::textTable(linkCells(comparison, Detail::Brief)));
  printNotes(linkAssumptions());
}

int run(const Options& options) {
  example::endOnInterrupt("Interrupted; finished runs are kept.");
  const Grid grid = expandGrid(options.lists);
  example::Paths paths;
  options.data.addTo(paths);
  options.watch.addTo(paths);
  checkOutput(options.out, grid, paths);
  const auto data = example::loadData(options.data, 1, 0);
  if (!data.notice.empty()) fmt::print("{}\n", data.notice);
  const muster::DirectoryLock lock(options.out);
  const Setting setting = settingOf(options, data);
  const Recipe recipe = recipeOf(options, data, setting.testEvery);
  ResultsFile results(options.out / "results.jsonl", recipe);
  Comparison comparison = comparisonOf(options, data, setting, recipe, grid, results.runs());
  for (const auto& sentence : {comparison.data, comparison.origin, comparison.training, comparison.testing})
    fmt::print("{}", example::wrapped(sentence, example::kLineLength));
  if (const auto warning = degenerateArms(grid, setting.trainingExamples); !warning.empty())
    fmt::print("{}\n", warning);
  fmt::print("{}, {}: {}, {} of them in {} already\n", muster::plural(grid.arms.size(), "arm"),
             muster::plural(grid.seeds.size(), "seed"), muster::plural(grid.runs(), "run"),
             results.runs().size(), results.path().string());

  const bool complete = [&] {
    const muster::Interrupt interrupt(
        "Interrupted: the current run is discarded, and finished runs are kept. Interrupt again to quit at "
        "once.");
    return trainAll(setting, options.out, comparison, results, interrupt.token());
  }();
  summariseInto(comparison);
  if (!results.runs().empty()) {
    // Write even if no run was left to train: `--target` may have changed.
    const bool page = writeComparison(options.out, comparison);
    printTables(comparison);
    fmt::print(
        "\nreport: {}; the last table for a README: {}\n",
        page ? (options.out / "report.html").string() : std::string("left out, as ") + example::kNoPage,
        (options.out / "table.md").string());
    if (page) fmt::print("all runs, also while they are trained: muster page {}\n", options.out.string());
  }
  if (complete) return 0;
  fmt::print("interrupted: {} of {} in {}, and the same command continues from there\n",
             results.runs().size(), grid.runs() == 1 ? "1 run is" : fmt::format("{} runs are", grid.runs()),
             results.path().string());
  return muster::kInterruptedExit;
}

}  // namespace

int convergence::compare(int argc, const char* const* argv) {
  const auto options = readOptions(argc, argv);
  return options ? run(*options) : 0;
}
