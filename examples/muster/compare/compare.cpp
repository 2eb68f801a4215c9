// muster compare: trains arms with several seeds, and reports how they differ.

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "examples/muster/commands.h"
#include "examples/muster/compare/arms.h"
#include "examples/muster/compare/base_data.h"
#include "examples/muster/compare/grid_trainer.h"
#include "examples/muster/compare/options.h"
#include "examples/muster/compare/output_files.h"
#include "examples/muster/compare/sentences.h"
#include "examples/muster/compare/tuning.h"
#include "examples/muster/options.h"
#include "examples/muster/program.h"
#include "examples/muster/run_options.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/comparison/comparison.h"
#include "muster/core/comparison/results_file.h"
#include "muster/core/io/json_value.h"
#include "muster/core/listeners/watch/machine_text.h"
#include "muster/datasets/directory_lock.h"
#include "muster/datasets/file_bytes.h"
#include "muster/datasets/source/detail/held_out.h"
#include "muster/parallel/nodes/launched_processes.h"
#include "muster/parallel/run/detail/monitors.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/detail/run_devices.h"
#include "muster/parallel/run/detail/run_network.h"
#include "muster/parallel/run/detail/saved_data.h"
#include "muster/parallel/run/prepared_run.h"

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

/// What is compared now, as the results file has it.
muster::ComparisonGrid gridOf(const Options& options, const BaseRun& base) {
  muster::ComparisonGrid grid{.testEvery = options.testEvery, .seeds = options.seeds, .tune = options.tune};
  for (const auto& text : options.arms)
    for (auto& arm : parseArms(text, base, options.armsBy)) {
      require(std::ranges::find(grid.arms, arm.name, &muster::ComparisonArm::name) == grid.arms.end(),
              "{}: there are two arms called \"{}\"", options.armsBy, arm.name);
      grid.arms.push_back(std::move(arm));
    }
  return grid;
}

/// What a run file says for all arms, as the results have it: with what stands in for MNIST, and the kinds of
/// the devices, since another GPU of the same kind continues a comparison.
std::map<std::string, std::string> commonOf(const BaseRun& base, const muster::LoadedData& data,
                                            std::span<const muster::Device> devices) {
  auto common = base.settings(base.run());
  common["data.type"] = muster::quoteJson(data.type);
  std::vector<std::string> kinds;
  for (const auto device : devices) kinds.push_back(muster::propertiesOf(device).name);
  common["training.devices"] = muster::quoteJson(fmt::format("{}", fmt::join(kinds, ",")));
  return common;
}

/// Arms of the same name that say the same in another form are those of the results. One of the results that
/// does not fit this run is another one.
void takeSameArms(const muster::ResultsFile& results, const BaseRun& base,
                  std::vector<muster::ComparisonArm>& arms) {
  const auto isTrained = [&](const muster::ComparisonArm& same, const muster::ComparisonArm& arm) {
    try {
      return base.differences(base.run(same.settings), 0) == base.differences(base.run(arm.settings), 0);
    } catch (const muster::InvalidArgument&) {
      return false;
    }
  };
  for (auto& arm : arms) {
    const auto& all = results.grid().arms;
    const auto same = std::ranges::find(all, arm.name, &muster::ComparisonArm::name);
    if (same != all.end() && isTrained(*same, arm)) arm = *same;
  }
}

/// What is compared on the data at hand, joined with what the results have.
void joinGrid(muster::ResultsFile& results, muster::ComparisonGrid now, const BaseRun& base,
              muster::LoadedData& data) {
  takeSameArms(results, base, now.arms);
  now.tune = namedAs(results.grid().tune, std::move(now.tune), results.grid().arms, base);
  now.contents = contentsOf(data);
  now.trainExamples = examplesIn(data.train);
  now.testExamples = examplesIn(data.test);
  if (results.fresh() && now.seeds.empty()) now.seeds = {1, 2, 3};
  if (results.fresh() && now.testEvery == 0)
    now.testEvery = std::max<std::int64_t>(1, now.trainExamples * base.run().training.epochs / 20);
  results.join(now);
}

/// How to tune: the network's own learning rate, and a third and three times as much.
std::string tuningAdvice(const muster::Network& network) {
  const double rate = network.learningRate().at(0);
  if (rate <= 0) return "--tune learningRate=A,B,C chooses one for each";
  return fmt::format("--tune learningRate={:.1g},{:g},{:.1g} chooses one for each", rate / 3, rate, rate * 3);
}

/// @throws InvalidArgument for a share where percent are meant, and for percent where R2 is.
void checkTarget(const Options& options, const muster::ComparisonMetric& metric) {
  require(!options.target || metric.factor != 100 || *options.target > 1,
          "{} must be above 1 and below 100: an accuracy in percent, as in 97; got {}", options.targetBy,
          options.target.value_or(0));
  require(!options.target || metric.factor != 1 || *options.target <= 1,
          "{} must be at most 1: it is {}; got {}", options.targetBy, metric.name,
          options.target.value_or(0));
}

/// @throws InvalidArgument naming an arm whose batches are larger than the data, if only full ones train.
void checkBatches(const BaseRun& base, const muster::ComparisonGrid& grid) {
  for (const auto& arm : grid.arms) try {
      muster::detail::requireFullBatch(base.run(arm.settings).data, grid.trainExamples);
    } catch (const muster::InvalidArgument& error) {
      throw muster::InvalidArgument(fmt::format("the arm \"{}\": {}", arm.name, error.what()));
    }
}

/// The comparison without its runs.
muster::Comparison comparisonOf(const Options& options, const std::string& file,
                                const muster::ComparisonGrid& grid, const muster::Network& network) {
  const auto metric = muster::ComparisonMetric::named(grid.metric);
  const auto restores = grid.common.find("listeners.earlyStopping.restoreBest");
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  muster::Comparison c{.title = file,
                       .baseline = options.baseline.empty() ? grid.arms.front().name : options.baseline,
                       .link = options.link,
                       .restoresBest = restores != grid.common.end() && restores->second == "true",
                       .made = fmt::format("Written on {:%F} (UTC) by muster {}, on {}.", today,
                                           MUSTER_VERSION, muster::processorName()),
                       .advice = {.tuning = tuningAdvice(network), .seeds = "--seeds 1,2,3,4,5 adds four"},
                       .grid = grid};
  if (options.target) c.target = *options.target / metric.factor;
  require(std::ranges::find(grid.arms, c.baseline, &muster::ComparisonArm::name) != grid.arms.end(),
          "{} {}: there is no such arm; the first is \"{}\"", options.baselineBy, c.baseline,
          grid.arms.front().name);
  return c;
}

/// That --tune or the listeners choose by a loss without the weights of the classes, if these differ.
std::vector<std::string> weightsWarnings(muster::RunListeners listeners, const muster::ComparisonGrid& grid,
                                         const muster::LoadedData& data) {
  std::vector<std::string> all;
  const auto loss = muster::detail::unweightedLoss(data);
  if (!loss.empty() && !grid.tune.empty()) all.push_back(fmt::format("Warning: --tune chooses by {}.", loss));
  listeners.checkpoints.reset();  // the runs of a comparison write none
  if (const auto remark = muster::detail::weightsRemark(listeners, data); !remark.empty())
    all.push_back(fmt::format("Warning: {}.", program::asSets(remark)));
  return all;
}

/// Trains what is missing, and prints and writes what is known then. @return the exit code.
int trainAndReport(GridSession& session, muster::Comparison& c, std::int64_t samplesPerRun) {
  const auto runs = muster::plural(c.planned(), "run");
  const auto path = session.results().path().string();
  fmt::print("{}, {}: {} of {} finished in {}\n", muster::plural(c.grid.arms.size(), "arm"),
             muster::plural(c.grid.seeds.size(), "seed"), c.finished(), runs, path);
  const bool complete = [&] {
    const muster::Interrupt interrupt(
        "Interrupted: the current run is discarded, and finished runs are kept. Interrupt again to quit at "
        "once.");
    return GridTrainer(session, c, samplesPerRun, interrupt.token()).run();
  }();
  session.refresh(c);
  if (c.finished() > 0) {
    c.writeReport(session.out());  // also if no run was left to train: the target may have changed
    fmt::print("\n{}\nreport: {}\n", c.text(program::kLineLength), (session.out() / "report.html").string());
  }
  if (complete) return 0;
  fmt::print("interrupted: {} of {} finished in {}, and the same command continues from there\n",
             c.finished(), runs, path);
  return muster::kInterruptedExit;
}

/// The devices of an arm that leaves the choice to the program, as the run file may, or not.
std::vector<muster::Device> unaskedDevices(const muster::RunTraining& training,
                                           const std::vector<muster::Device>& devices) {
  return training.devices == "auto" ? devices : muster::detail::chooseUnasked().devices;
}

int compareRun(const Options& options, const std::string& file, const std::string& text,
               const std::vector<muster::Device>& devices) {
  BaseRun base(file, text, options.sets);
  base.setUnasked(unaskedDevices(base.run().training, devices));
  base.setDevices(devices);  // the same for all runs
  checkBase(base.run());
  auto now = gridOf(options, base);
  checkOutput(options.out, file, base.run());
  const bool begins = !std::filesystem::exists(options.out / kResultsName);
  require(!now.arms.empty() || !begins,
          "there is no arm to compare: give some, as in --arm averaging --arm 'diloco every=50'");
  checkValues(now.tune, /*several=*/begins, options.tuneBy);  // otherwise they join those of the results
  if (begins) checkTune(now.tune, now.arms, base, options.tuneBy);
  muster::LoadedData data = loadData(base);
  const auto task = muster::detail::makeNetwork(base.run(), data)->task();
  now.metric = task == muster::Task::Regression ? "r2" : "accuracy";
  checkTarget(options, muster::ComparisonMetric::named(now.metric));
  const muster::DirectoryLock lock(options.out);
  muster::ResultsFile results(options.out / kResultsName, "another --out");
  if (now.tune.empty()) now.tune = results.grid().tune;
  now.common = commonOf(base, data, devices);  // as given: what is held out follows from it
  const auto heldOut = holdOut(base, now, data);
  joinGrid(results, now, base, data);
  const auto& grid = results.grid();
  checkTune(grid.tune, grid.arms, base, options.tuneBy);
  checkBatches(base, grid);
  GridSession session(base, results, options.out);
  session.requireDifferent();

  const auto network = muster::detail::makeNetwork(base.run(), data);  // of the data without those held out
  auto c = comparisonOf(options, file, grid, *network);
  c.paragraphs = paragraphsOf(base, data, grid, *network, heldOut);
  for (auto& warning : warningsOf(base, grid)) c.paragraphs.push_back(std::move(warning));
  data.contents.earlier = muster::detail::earlierTrainings(base.run(), /*resumed=*/{});
  for (const auto& warning : muster::detail::dataWarnings(base.run(), data))
    c.paragraphs.push_back(fmt::format("Warning: {}.", program::asSets(warning)));
  for (auto& warning : weightsWarnings(base.run().listeners, grid, data))
    c.paragraphs.push_back(std::move(warning));
  for (const auto& one : c.paragraphs) fmt::print("{}", muster::wrappedText(one, program::kLineLength));
  fmt::print("{}", muster::wrappedText(c.tuningNote(), program::kLineLength));
  session.refresh(c);
  return trainAndReport(session, c, grid.trainExamples * base.run().training.epochs);
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
  for (const auto& set : options->sets)
    muster::require(
        set.find_first_of(".=") != 7 || !set.starts_with("compare"),
        "--set {}: --set is for what is trained; --arm, --tune, --seeds, --test-every, --baseline, --target "
        "and --link replace the fields of compare",
        set);
  const auto run = readRun(file, options->sets);  // says what is wrong with the file or with --set
  comparing::takeDefaults(file, text, *options);
  program::endOnInterrupt("Interrupted; finished runs are kept.");
  return sayErrors(asSets, [&] {
    const auto devices = muster::detail::devicesOf(run.training);
    return muster::detail::runOn(
        devices, [&] { return comparing::compareRun(*options, file, text, devices.devices); });
  });
}

}  // namespace program
