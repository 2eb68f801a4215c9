// muster compare: trains arms with several seeds, and reports how they differ.

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "examples/muster/commands.h"
#include "examples/muster/compare/base_data.h"
#include "examples/muster/compare/cell.h"
#include "examples/muster/compare/grid_progress.h"
#include "examples/muster/compare/options.h"
#include "examples/muster/compare/output_files.h"
#include "examples/muster/compare/tables.h"
#include "examples/muster/options.h"
#include "examples/muster/program.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/io/network_json.h"
#include "muster/core/listeners/watch/machine_text.h"
#include "muster/datasets/directory_lock.h"
#include "muster/datasets/file_bytes.h"
#include "muster/parallel/nodes/launched_processes.h"
#include "muster/parallel/run/run_devices.h"
#include "muster/parallel/run/session.h"

namespace comparing {
namespace {

using muster::require;

void checkBase(const muster::RunFile& run) {
  const auto& nodes = run.training.nodes;
  require(nodes == "none" || nodes == "auto", "training.nodes: {}, and a comparison trains in one process",
          nodes);
  require(muster::launchedProcesses() == "1",
          "a comparison trains in one process, and {} were launched: start it without mpirun",
          muster::launchedProcesses());
  require(run.training.resume.empty(), "training.resume: each training of a comparison begins anew");
}

/// A comparison under way: what its parts need.
struct Session {
  const BaseRun& base;
  ResultsFile& results;
  const std::filesystem::path& out;
  std::int64_t samples = 0;                       ///< of a run
  std::vector<std::vector<Choice>> choices = {};  ///< [arm] to tune among; empty: not tuned
  std::map<std::vector<std::string>, std::vector<std::string>> values = {};  ///< of a run, by what it sets

  const std::vector<std::string>& valuesOf(const std::vector<std::string>& sets) {
    auto& known = values[sets];
    if (known.empty() && !sets.empty()) known = base.differences(base.run(sets), 0);
    return known;
  }
};

std::vector<std::string> joined(std::vector<std::string> sets, const std::vector<std::string>& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

Cell cellOf(Session& s, const Arm& arm, const std::vector<std::string>& sets, std::int64_t seed) {
  const bool tuning = seed == kTuningSeed;
  return {.arm = arm.name,
          .run = s.base.run(sets, seed),
          .values = s.valuesOf(sets),
          .seed = seed,
          .tuning = tuning,
          .testEvery = s.results.grid().testEvery,
          .curves = tuning ? "" : curvesFile(s.out, arm.name, seed)};
}

const RunRecord* resultOf(Session& s, const std::vector<std::string>& sets, std::int64_t seed) {
  return s.results.find(s.valuesOf(sets), seed);
}

/// The choice of each arm, if all its tuning runs are finished.
std::optional<Tuned> tunedArm(Session& s, std::size_t arm) {
  const Grid& grid = s.results.grid();
  std::vector<const RunRecord*> runs;
  for (const auto& choice : s.choices[arm])
    runs.push_back(resultOf(s, joined(grid.arms[arm].sets, choice.sets), kTuningSeed));
  if (runs.empty() || std::ranges::find(runs, nullptr) != runs.end()) return std::nullopt;
  return choose(grid.arms[arm], s.choices[arm], runs);
}

/// The fields of an arm, with those that tuning has chosen; nothing while that is not known.
std::optional<std::vector<std::string>> chosenSets(Session& s, std::size_t arm) {
  const auto& sets = s.results.grid().arms[arm].sets;
  if (s.choices[arm].empty()) return sets;
  const auto tuned = tunedArm(s, arm);
  if (!tuned) return std::nullopt;
  return joined(sets, tuned->choices[tuned->best].sets);
}

/// Fills what follows from the results.
void refresh(Session& s, Comparison& c) {
  const Grid& grid = s.results.grid();
  c.grid = grid;
  c.runs.assign(grid.arms.size(), {});
  c.tuned.clear();
  for (std::size_t arm = 0; arm < grid.arms.size(); ++arm) {
    if (auto tuned = tunedArm(s, arm)) c.tuned.push_back(std::move(*tuned));
    const auto sets = chosenSets(s, arm);
    if (!sets) continue;
    for (const auto seed : grid.seeds)
      if (const auto* run = resultOf(s, *sets, seed)) c.runs[arm].push_back(run);
  }
  summarise(c);
}

std::string lineOf(const RunRecord& run, const Metric& metric) {
  if (run.failed()) return "diverged";
  const auto score = run.on == "test"
                         ? fmt::format("{} {:.{}f}{}", metric.name, run.end().score * metric.factor,
                                       metric.decimals, metric.unit)
                         : fmt::format("validation loss {:.4g}", run.end().loss);
  return fmt::format("{} after {} samples in {} s", score,
                     groupedNumber(static_cast<double>(run.end().samples)), secondsDigits(run.end().seconds));
}

/// Trains the cells that the results lack, and updates the other files after each.
class Trainer {
 public:
  Trainer(Session& session, Comparison& comparison, std::stop_token stop)
      : s_(session), c_(comparison), stop_(std::move(stop)), progress_(planOf(session, comparison)) {}

  /// @return false if interrupted.
  bool run() {
    const Grid& grid = s_.results.grid();
    for (std::size_t arm = 0; arm < grid.arms.size(); ++arm)
      for (const auto& choice : s_.choices[arm])
        if (!train(arm, joined(grid.arms[arm].sets, choice.sets), kTuningSeed, choice.text)) return false;
    // All arms with one seed before the next seed: then finished runs are comparable at any time.
    for (const auto seed : grid.seeds)
      for (std::size_t arm = 0; arm < grid.arms.size(); ++arm)
        if (!train(arm, chosenSets(s_, arm).value(), seed, fmt::format("seed {}", seed))) return false;
    return true;
  }

 private:
  static GridProgressOptions planOf(Session& s, const Comparison& c) {
    const Grid& grid = s.results.grid();
    std::size_t runs = grid.arms.size() * grid.seeds.size(), finished = c.finished();
    for (std::size_t arm = 0; arm < grid.arms.size(); ++arm)
      for (const auto& choice : s.choices[arm]) {
        ++runs;
        if (resultOf(s, joined(grid.arms[arm].sets, choice.sets), kTuningSeed) != nullptr) ++finished;
      }
    return {.runs = runs, .finished = finished, .samplesPerRun = s.samples};
  }

  bool train(std::size_t arm, const std::vector<std::string>& sets, std::int64_t seed,
             const std::string& which) {
    if (resultOf(s_, sets, seed) != nullptr) return true;
    if (stop_.stop_requested()) return false;
    const Cell cell = cellOf(s_, s_.results.grid().arms[arm], sets, seed);
    if (!std::exchange(warm_, true)) warmUp(cell);
    const auto name = fmt::format("{}, {}", cell.arm, which);
    progress_.begin(name);
    const auto run = trainCell(
        cell, [&](std::int64_t samples) { progress_.advance(samples); }, stop_);
    if (!run) return false;
    s_.results.add(*run);
    refresh(s_, c_);
    writeFiles(s_.out, c_);
    progress_.finish(fmt::format("{}: {}", name, lineOf(*run, c_.metric)));
    return true;
  }

  /// Trains up to the first merge and discards it, so that one-time costs of the process are not measured.
  void warmUp(Cell cell) {
    std::stop_source stop;
    const std::stop_callback also(stop_, [&] { stop.request_stop(); });
    cell.curves.clear();
    cell.run.listeners.tensorBoard.clear();
    trainCell(
        cell, [&](std::int64_t) { stop.request_stop(); }, stop.get_token());
  }

  Session& s_;
  Comparison& c_;
  std::stop_token stop_;
  GridProgress progress_;
  bool warm_ = false;
};

/// Refuses two arms that are the same training, or whose files would have the same name.
void requireDifferent(Session& s) {
  std::map<std::vector<std::string>, std::string> trainings;
  std::map<std::filesystem::path, std::string> files;
  for (const auto& arm : s.results.grid().arms) {
    const auto [same, added] = trainings.emplace(s.valuesOf(arm.sets), arm.name);
    require(added, "the arms \"{}\" and \"{}\" are the same training", same->second, arm.name);
    const auto [file, other] = files.emplace(curvesFile("", arm.name, 1), arm.name);
    require(other, "the arms \"{}\" and \"{}\" need names that differ by letters or digits", file->second,
            arm.name);
  }
}

/// What is compared now, as the results file has it.
Grid gridOf(const Options& options, const BaseRun& base) {
  Grid grid{.testEvery = options.testEvery, .seeds = options.seeds, .tune = options.tune};
  for (const auto& text : options.arms)
    for (auto& arm : parseArms(text, base)) {
      require(std::ranges::find(grid.arms, arm.name, &Arm::name) == grid.arms.end(),
              "--arm: there are two arms called \"{}\"", arm.name);
      base.run(arm.sets);
      grid.arms.push_back(std::move(arm));
    }
  return grid;
}

void printNotes(const std::vector<std::string>& notes) {
  for (const auto& note : notes) fmt::print("{}", wrapped(note, program::kLineLength));
}

void printTables(const Comparison& c) {
  fmt::print("\n{}\n", textTable(summaryCells(c, Detail::Brief)));
  printNotes(summaryNotes(c, Detail::Brief));
  if (const auto cells = tuningCells(c); !cells.empty()) fmt::print("\n{}\n", textTable(cells));
  printNotes({tuningNote(c)});
  if (c.link) {
    fmt::print("\nprojected on a link of {}:\n\n{}\n", describe(*c.link),
               textTable(linkCells(c, Detail::Brief)));
    printNotes(linkAssumptions());
  }
  printNotes({"", conclusion(c)});
}

/// Sentences on data, network and tests.
std::vector<std::string> paragraphsOf(const BaseRun& base, const muster::LoadedData& data, const Grid& grid,
                                      muster::Network& network, const std::string& heldOut) {
  const auto run = base.run();
  const auto noun = nounOf(run.data);
  std::vector<std::string> all{fmt::format(
      "Data: {}, {} to train with and {} to test with, from {}.", data.title,
      counted(grid.trainExamples, noun), groupedNumber(static_cast<double>(grid.testExamples)), data.origin)};
  if (!heldOut.empty()) all.push_back(heldOut);
  all.push_back(
      fmt::format("Every arm begins with the same weights for a seed, and sees the {}s in the same order; "
                  "the network of the run "
                  "file has {} parameters, and trains {}{}.",
                  noun, groupedNumber(static_cast<double>(network.parameterCount())),
                  muster::plural(run.training.epochs, "epoch"),
                  run.listeners.earlyStopping ? ", or until it no longer improves (earlyStopping)" : ""));
  all.push_back(
      fmt::format("The merged model is tested at the first merge at or after each multiple of {}, and at "
                  "the end.",
                  counted(grid.testEvery, "sample")));
  return all;
}

/// Sentences on arms that merge less often than they say, or whose workers have too few batches.
std::vector<std::string> warningsOf(const BaseRun& base, const Grid& grid) {
  std::vector<std::string> seldom, idle, all;
  for (const auto& arm : grid.arms) {
    const auto run = base.run(arm.sets);
    const auto more = run.data.dropLast ? 0 : run.data.batch - 1;
    const auto batches = (grid.trainExamples + more) / run.data.batch;
    if (batches < run.training.workers)
      idle.push_back(arm.name);
    else if (!muster::periodRemark(run, batches).empty())
      seldom.push_back(arm.name);
  }
  const auto tell = [&](std::string_view what, const std::vector<std::string>& arms) {
    if (!arms.empty()) all.push_back(fmt::format("Warning: {}: {}.", what, fmt::join(arms, "; ")));
  };
  tell("merged at the end of each epoch only, because an epoch has fewer iterations than the period", seldom);
  tell("an epoch has fewer batches than workers, so some train nothing", idle);
  return all;
}

int compareRun(const Options& options, const std::string& file, const std::string& text) {
  BaseRun base(file, text, options.sets);
  checkBase(base.run());
  Grid now = gridOf(options, base);
  if (!now.arms.empty()) checkTune(now.tune, now.arms, base);
  checkOutput(options.out, file, base.run());
  require(!now.arms.empty() || std::filesystem::exists(options.out / kResultsName),
          "there is no arm to compare: give some, as in --arm averaging --arm 'diloco every=50'");
  muster::LoadedData data = loadData(base);
  const muster::DirectoryLock lock(options.out);
  ResultsFile results(options.out / kResultsName);
  if (now.tune.empty()) now.tune = results.grid().tune;
  const auto heldOut = holdOut(base, now, data);
  now.settings = base.settings(base.run());
  now.settings["the data's contents"] = contentsOf(data);
  now.trainExamples = examplesIn(data.train);
  now.testExamples = examplesIn(data.test);
  const auto network = muster::makeNetwork(base.run(), data);
  now.metric = network->task() == muster::Task::Regression ? "r2" : "accuracy";
  const auto samples = now.trainExamples * base.run().training.epochs;
  const bool fresh = results.grid().settings.empty();
  if (fresh && now.seeds.empty()) now.seeds = {1, 2, 3};
  if (fresh && now.testEvery == 0) now.testEvery = std::max<std::int64_t>(1, samples / 20);
  results.join(now);
  const Grid& grid = results.grid();
  checkTune(grid.tune, grid.arms, base);

  Session session{.base = base, .results = results, .out = options.out, .samples = samples};
  for (const auto& arm : grid.arms) session.choices.push_back(choicesOf(arm, grid.tune, base));
  requireDifferent(session);
  Comparison c{.grid = grid, .metric = Metric::named(grid.metric), .runs = {}, .link = options.link};
  c.baseline = options.baseline.empty() ? grid.arms.front().name : options.baseline;
  require(std::ranges::find(grid.arms, c.baseline, &Arm::name) != grid.arms.end(),
          "--baseline {}: there is no such arm; the first is \"{}\"", c.baseline, grid.arms.front().name);
  if (options.target) c.wantedTarget = *options.target / c.metric.factor;
  c.title = file;
  c.paragraphs = paragraphsOf(base, data, grid, *network, heldOut);
  for (auto& warning : warningsOf(base, grid)) c.paragraphs.push_back(std::move(warning));
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  c.made = fmt::format("Written on {:%F} (UTC) by muster {}, on {}.", today, MUSTER_VERSION,
                       muster::processorName());
  printNotes(c.paragraphs);
  printNotes({tuningNote(c)});
  refresh(session, c);
  fmt::print("{}, {}: {} of {} finished in {}\n", muster::plural(grid.arms.size(), "arm"),
             muster::plural(grid.seeds.size(), "seed"), c.finished(),
             muster::plural(grid.arms.size() * grid.seeds.size(), "run"), results.path().string());

  const bool complete = [&] {
    const muster::Interrupt interrupt(
        "Interrupted: the current run is discarded, and finished runs are kept. Interrupt again to quit at "
        "once.");
    return Trainer(session, c, interrupt.token()).run();
  }();
  refresh(session, c);
  if (c.finished() > 0) {
    writeFiles(options.out, c);  // also if no run was left to train: the target may have changed
    printTables(c);
    fmt::print("\nreport: {}\n", (options.out / "report.html").string());
  }
  if (complete) return 0;
  fmt::print("interrupted: {} of {} finished in {}, and the same command continues from there\n",
             c.finished(), muster::plural(grid.arms.size() * grid.seeds.size(), "run"),
             results.path().string());
  return muster::kInterruptedExit;
}

}  // namespace
}  // namespace comparing

namespace program {

int compare(const Call& call) {
  auto options = comparing::readOptions(call);
  if (!options) return 0;
  const auto& file = fileOf(call, "a run file such as run.json");
  const auto bytes = muster::readFile(file);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto run = muster::RunFile::read(file, options->sets);  // says what is wrong with the file
  comparing::takeDefaults(text, *options);
  program::endOnInterrupt("Interrupted; finished runs are kept.");
  return muster::runOn(devicesOf(run.training), [&] { return comparing::compareRun(*options, file, text); });
}

}  // namespace program
