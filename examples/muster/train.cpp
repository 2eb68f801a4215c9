#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "examples/muster/commands.h"
#include "examples/muster/options.h"
#include "examples/muster/program.h"
#include "examples/muster/run_paths.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/columns_line.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/eval/guess_remark.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/run/keep_network.h"
#include "muster/parallel/run/node_options.h"
#include "muster/parallel/run/report.h"
#include "muster/parallel/run/results.h"
#include "muster/parallel/run/resuming.h"
#include "muster/parallel/run/session.h"
#include "muster/parallel/run/watchers.h"

namespace program {
namespace {

using namespace muster;

constexpr std::string_view kIntroduction =
    R"(Trains the network of a run file on its data, with several workers at once: each trains a replica of the
network on batches of its own, and every few iterations the replicas are merged. Options replace fields of the file.

  muster train run.json
  muster train run.json --workers 4 --averaging-frequency 10 --set network.layers[0].outChannels=8
  muster train result.json --json again.json     a result that --json wrote is a run file, too

Ctrl-C finishes the current step, merges, saves the model and exits with 130; a second one quits.
)";

struct Options {
  FieldChoices fields;
  NodeOptions nodes;
  std::filesystem::path runFile, json;
  bool quiet = false;
  bool watch = false;
};

/// Checks paths before the data are read.
void checkPaths(const Options& options, const RunFile& run, const std::filesystem::path& resumed) {
  auto paths = pathsOf(options.runFile, run, resumed);
  paths.writes("--json", options.json);
  paths.check();
}

/// The learning rate's field and value, for the message of a diverged training.
std::string learningRateOf(const RunFile& run) {
  constexpr std::string_view kField = "network.updater.learningRate";
  const auto network = parseJson(run.network);
  boost::system::error_code missing;  // a missing field has the default
  const auto* rate = network.find_pointer("/updater/learningRate", missing);
  if (rate == nullptr) return fmt::format("the default of {}", kField);
  const auto* number = rate->find_pointer("/value", missing);
  return fmt::format("{} {}", kField, printJsonLine(number != nullptr ? *number : *rate));
}

/// Which data there are, as "MNIST, 60000 examples to train with and 10000 to test with, from /data".
std::string dataLine(const LoadedData& data) {
  auto line =
      fmt::format("{}, {} to train with", data.title, plural(data.train->examples().value_or(0), "example"));
  if (data.validation) line += fmt::format(", {} to validate with", data.validation->examples().value_or(0));
  if (data.test) line += fmt::format(" and {} to test with", data.test->examples().value_or(0));
  return fmt::format("{}, from {}", line, data.origin);
}

/// Prints what is trained, from where, and the plan.
void introduce(const RunFile& run, const LoadedData& data, const Network& network, const Resumed& resumed,
               const ParallelWrapper& wrapper, int nodes) {
  fmt::print("data: {}\n\n{}", dataLine(data), network.summary());
  if (const auto columns = columnsLine(network.inputDescription()); !columns.empty())
    fmt::print("{}\n", columns);
  if (!resumed.file.empty()) {
    const auto batches = resumed.batches;
    fmt::print("resuming: {}, with {} finished{}\n", resumed.file.string(), plural(network.epoch(), "epoch"),
               batches > 0 ? fmt::format(", and {} of the next", plural(batches, "batch", "batches")) : "");
  } else if (!run.training.resume.empty()) {
    fmt::print("nothing to resume in {}: the training begins\n", run.training.resume);
  }
  if (!resumed.changes.empty())
    fmt::print(
        "it was trained with {}: the training continues, but with other bits than without the change\n",
        resumed.changes);
  const auto epochs = run.training.epochs - network.epoch();
  if (epochs <= 0)
    fmt::print("nothing is left to train, as training.epochs is {}: testing what the file holds\n",
               run.training.epochs);
  else
    fmt::print("plan: {}; {} a batch, {}\n", wrapper.plan(), plural(run.data.batch, "example"),
               plural(epochs, "epoch"));
  const auto period = periodRemark(run, data.train->batchesPerEpoch().value_or(0), nodes);
  for (const auto& remark : {epochs > 0 ? period : "", resumed.file.empty() ? replacesRemark(run) : ""})
    if (!remark.empty()) fmt::print("note: {}\n", remark);
}

/// For example "interrupted, with 2 of 5 epochs finished".
std::string interruption(const RunFile& run, const Network& network) {
  return fmt::format("interrupted, with {} of {} finished", network.epoch(),
                     plural(run.training.epochs, "epoch"));
}

/// Prints the results and writes the files asked for.
void conclude(Results& results, const Options& options, LoadedData& data, Network& network,
              ParallelWrapper& wrapper, const Watching& watching) {
  const RunFile& run = results.run;
  const auto print = [&](std::string_view part, const AnyEvaluation& scores, bool choseEpoch) {
    fmt::print("{}: {} on {}{}\n", part, scores.line(), plural(scores.examples(), "example"),
               intervalText(scores, choseEpoch));
  };
  std::optional<AnyEvaluation> validation;
  if (data.validation) {
    validation = wrapper.evaluateTask(*data.validation);
    print("validation", *validation, results.watchers.stopping && run.listeners.earlyStopping->restoreBest);
    if (const auto remark = guessRemark(*validation); !remark.empty()) logWarning("{}", remark);
  }
  if (data.test) {
    results.test = wrapper.evaluateTask(*data.test);
    const auto [score, value] = results.test->mainScore();
    watching.result(std::string(score), value);
    print("test", *results.test, false);
  }
  fmt::print("{}saved: {}; {}\n", costLine(results), run.training.model,
             results.interrupted ? interruption(run, network) + ", and --resume continues from there"
                                 : checkSaved(network, run.training.model, data));
  if (!run.listeners.report.empty())
    fmt::print("report: {}\n", writeReport(run.listeners.report, results.test ? *results.test : *validation,
                                           network, data, data.test ? *data.test : *data.validation,
                                           results.interrupted ? interruption(run, network) : "", watching));
  if (options.json.empty()) return;
  writeResults(options.json, results);
  if (!options.quiet) fmt::print("json: {}\n", options.json.string());
}

int trainRun(RunFile run, Options options) {
  const auto started = std::chrono::steady_clock::now();
  requireModules(run.listeners);
  const auto devices = devicesOf(run.training);
  endOnInterrupt(kInterruptedBefore);
  settleNodes(run, options.nodes);
  const Nodes nodes = nodesOf(run.training, options.nodes);
  const auto isFirst = [&nodes] { return nodes.node() == 0; };  // node 0 prints and writes files
  bool first = isFirst();  // elastic nodes: read again after the training
  options.quiet = options.quiet || !first;
  auto resumed = resumedBy(run, nodes.nodes());
  if (first && !nodes.elastic()) {
    requireNoOtherTraining(run);
    requireOwnCheckpoints(run, resumed.file);
  }
  if (first) checkPaths(options, run, resumed.file);
  requireUsable(devices);

  LoadedData data = loadData(run.data, run.training.placement, devices.devices,
                             static_cast<int>(run.training.workers), knownBy(run, resumed.file));
  run.data.type = data.type;
  if (!data.notice.empty()) fmt::print("{}\n", data.notice);
  require(run.listeners.report.empty() || data.test || data.validation,
          "listeners.report: needs data to test with, or data.validationExamples");
  const auto network = makeNetwork(run, data);
  if (first) requireDiskRoom(run, *network);
  if (!resumed.file.empty()) {
    loadState(*network, resumed.file);
    resumed.batches = batchesTrained(*network);
  }
  checkMonitors(run, data, *network);
  const std::int64_t begun = network->iteration(), epochsBefore = network->epoch();
  const bool overNodes = nodes.nodes() > 1 || nodes.elastic();
  Watchers watchers = watch(run, data, *network,
                            {.progress = !options.quiet, .overNodes = overNodes, .terminal = options.watch});
  const auto watching = watchingOf(run, watchers, first, overNodes);
  watching.addTo(watchers.all);
  auto wrapper = makeWrapper(run, devices, nodes, *network, watchers.all, options.nodes.count());
  if (!options.quiet) {
    for (const auto& notice : {devices.notice, data.placed})
      if (!notice.empty()) fmt::print("{}\n", notice);
    introduce(run, data, *network, resumed, wrapper, options.nodes.count());
  }
  if (!first && resumed.file.empty() && !run.training.resume.empty()) logNothingToResume(run.training.resume);
  watching.describe(wrapper.plan(), network->summary());
  watching.options(hyperParameters(run), {network->task() == Task::Regression ? "r2" : "accuracy"});

  TrainingInterrupt interrupt;
  const auto saves = [&nodes] { return nodes.node() == savingNode(nodes); };
  bool saved = false, interrupted = false;
  trainAndSave(
      [&] {
        watching.during([&] {
          wrapper.fit(data.training(), std::max<std::int64_t>(run.training.epochs - network->epoch(), 0),
                      interrupt.token());
        });
        interrupted = onAnyNode(nodes, interrupt.requested());
      },
      [&](bool failed) {
        if (!saves()) return;
        if ((failed || interrupted) && network->iteration() == begun) {
          fmt::print("ended before the first step: nothing was saved\n");
          return;
        }
        watchers.diverged->requireNone(*network);
        // If early stopping restored the best state, the training state does not belong to the model.
        const bool restored =
            watchers.stopping && run.listeners.earlyStopping->restoreBest && watchers.stopping->best();
        if (!restored && watchers.last->state) network->trainingState() = *watchers.last->state;
        writeHereOrElsewhere(run.training.model, [&](const std::filesystem::path& path) {
          saveModel(*network, path, notesOf(run));
        });
        saved = true;
        if (failed)
          fmt::print("saved: {}, with what was trained before the failure{}\n", run.training.model,
                     isFirst() ? "" : ", by this node, because node 0 is lost");
      },
      learningRateOf(run), {run.training.model, [&](const std::filesystem::path& path) {
                              if (!saves() || network->iteration() == begun) return false;
                              saveModel(*network, path, notesOf(run));
                              return true;
                            }});
  first = isFirst();
  if (first)
    interrupt.end(saved);
  else
    interrupt.end();
  const int status = interrupted ? kInterruptedExit : 0;
  if (!first && nodes.elastic()) {
    if (!options.quiet)
      fmt::print("this was process {} of the training: process 0 saves the network and tests it\n",
                 nodes.node());
    return status;
  }
  if (!first) {
    for (auto* const judged : {data.validation.get(), data.test.get()})
      if (judged && (network->iteration() != begun || !interrupted)) wrapper.evaluateTask(*judged);
    return status;
  }
  if (!saved) return kInterruptedExit;

  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  Results results{.run = run,
                  .data = data,
                  .watchers = watchers,
                  .plan = wrapper.plan(),
                  .resumedFrom = resumed.file,
                  .epochsBefore = epochsBefore,
                  .epochs = network->epoch(),
                  .interrupted = interrupted,
                  .task = network->task(),
                  .secondsInAll = seconds.count()};
  if (const auto* const link = nodes.link()) results.bytesSent = link->bytesSent();
  conclude(results, options, data, *network, wrapper, watching);
  return status;
}

}  // namespace

int train(const Call& call) {
  Options options;
  CommandLine line(kIntroduction);
  describeFields(line, options.fields);
  line.group("Several processes");
  describeNodes(line, options.nodes);
  line.group("Output");
  line.add("json", options.json, "FILE", "write the run and its results");
  line.flag("watch", options.watch, "draw a row for each worker and the curve of the score in the terminal");
  line.flag("quiet", options.quiet, "print the result only");
  if (!readOptions(line, call)) return 0;
  if (options.quiet) line.refuse({"watch"}, "shows what --quiet leaves out");
  checkNodes(line, options.nodes);
  options.runFile = fileOf(call, "a run file such as run.json");
  const RunFile run = readRun(options.runFile.string(), options.fields);
  return runOn(devicesOf(run.training), [&] { return trainRun(run, options); });
}

}  // namespace program
