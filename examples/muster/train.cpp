#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "examples/muster/columns_line.h"
#include "examples/muster/commands.h"
#include "examples/muster/guess_remark.h"
#include "examples/muster/options.h"
#include "examples/muster/session.h"
#include "examples/muster/watchers.h"
#include "examples/support/keep_network.h"
#include "examples/support/nodes.h"
#include "examples/support/paths.h"
#include "examples/support/program.h"
#include "examples/support/training_interrupt.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/json_value.h"

namespace program {
namespace {

using namespace muster;

constexpr std::string_view kIntroduction =
    R"(Trains the network of a run file on its data, with several workers at once.

  muster train run.json
  muster train run.json --set training.workers=4 --set training.strategy.every=10
  muster train result.json --json again.json     a result that --json wrote is a run file, too

Ctrl-C finishes the current step, merges, saves the model and exits with 130; a second one quits.
)";

struct Options {
  std::vector<std::string> sets;
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

struct Results {
  std::optional<AnyEvaluation> test;
  std::int64_t epochs = 0;
  bool interrupted = false;
  Task task = Task::Classification;
};

void putScores(const AnyEvaluation& test, JsonWriter& json) {
  switch (test.task()) {
    case Task::Classification:
      json.put("testAccuracy", test.accuracy());
      json.put("testLoss", test.loss());
      json.put("f1", test.f1());
      return;
    case Task::Regression:
      json.put("testR2", test.regression().r2());
      json.put("testRmse", test.regression().rootMeanSquaredError());
      json.put("testMae", test.regression().meanAbsoluteError());
      json.put("testLoss", test.loss());
      return;
    case Task::Labels:
      json.put("testAccuracy", test.accuracy());
      json.put("testLoss", test.loss());
      json.put("f1", test.f1());
      if (const double auc = test.labels().auc(); std::isfinite(auc)) json.put("testAuc", auc);
      return;
  }
}

void writeResults(const std::filesystem::path& path, const RunFile& run, const Results& results,
                  const Watchers& watchers, const std::string& plan) {
  JsonWriter json;
  json.put("program", "muster");
  json.group("configuration", [&](JsonWriter& in) { run.write(in); });
  json.put("plan", std::string_view(plan));
  json.put("interrupted", results.interrupted);
  json.put("epochsFinished", results.epochs);
  if (watchers.stopping) {
    json.put("stopped", std::string_view(watchers.stopping->reason()));
    if (const auto& best = watchers.stopping->best()) json.put("bestValue", best->value);
  }
  if (results.test) putScores(*results.test, json);
  watchers.record->write(json, results.task);
  const auto& report = watchers.performance->report();
  json.put("seconds", report.seconds);
  json.put("samplesPerSecond", report.samplesPerSecond());
  writeFileAtomically(path, json.text());
}

/// Prints what is trained, from where, and the plan.
void introduce(const RunFile& run, const LoadedData& data, const Network& network, const Resumed& resumed,
               const ParallelWrapper& wrapper) {
  fmt::print("data: {}, {} to train with, from {}\n\n{}", data.title,
             plural(data.train->examples().value_or(0), "example"), data.origin, network.summary());
  if (const auto columns = columnsLine(network.inputDescription()); !columns.empty())
    fmt::print("{}\n", columns);
  if (!resumed.file.empty())
    fmt::print("resuming: {}, with {} finished\n", resumed.file.string(), plural(network.epoch(), "epoch"));
  else if (!run.training.resume.empty())
    fmt::print("nothing to resume in {}: the training begins\n", run.training.resume);
  if (!resumed.changes.empty())
    fmt::print(
        "it was trained with {}: the training continues, but with other bits than without the change\n",
        resumed.changes);
  fmt::print("plan: {}; {} a batch, up to epoch {}\n", wrapper.plan(), plural(run.data.batch, "example"),
             run.training.epochs);
}

int trainRun(const RunFile& run, Options options) {
  requireModules(run.listeners);
  const auto devices = devicesOf(run.training);
  example::endOnInterrupt(example::kInterruptedBefore);
  const Nodes nodes = nodesOf(run.training);
  const auto isFirst = [&nodes] { return nodes.node() == 0; };  // node 0 prints and writes files
  bool first = isFirst();  // elastic nodes: read again after the training
  options.quiet = options.quiet || !first;
  const auto [resumed, changes] = resumedBy(run, nodes.nodes());
  if (first && !nodes.elastic()) {
    example::requireNoOtherTraining(checkpointsOf(run));
    example::requireOwnCheckpoints(checkpointsOf(run), resumed);
  }
  if (first) checkPaths(options, run, resumed);
  example::requireUsable(devices);

  LoadedData data = loadData(run.data, run.training.placement, devices.devices,
                             static_cast<int>(run.training.workers), knownBy(run, resumed));
  const auto network = makeNetwork(run, data);
  if (first) requireRoom(run, *network);
  if (!resumed.empty()) loadState(*network, resumed);
  checkMonitors(run, data, *network);
  const std::int64_t begun = network->iteration();
  Watchers watchers = watch(run, data, *network,
                            {.progress = !options.quiet,
                             .overNodes = nodes.nodes() > 1 || nodes.elastic(),
                             .terminal = options.watch});
  const auto watching = watchingOf(run, watchers, first, nodes.nodes() > 1 || nodes.elastic());
  watching.addTo(watchers.all);
  auto wrapper = makeWrapper(run, devices, nodes, *network, watchers.all);
  if (!options.quiet) {
    for (const auto& notice : {devices.notice, data.placed})
      if (!notice.empty()) fmt::print("{}\n", notice);
    introduce(run, data, *network, {resumed, changes}, wrapper);
  }
  if (!first && resumed.empty() && !run.training.resume.empty())
    example::logNothingToResume(run.training.resume);
  watching.describe(wrapper.plan(), network->summary());
  watching.options(hyperParameters(run), {network->task() == Task::Regression ? "r2" : "accuracy"});

  example::TrainingInterrupt interrupt;
  const auto saves = [&nodes] { return nodes.node() == example::savingNode(nodes); };
  bool saved = false, interrupted = false;
  example::trainAndSave(
      [&] {
        watching.during([&] {
          wrapper.fit(data.training(), std::max<std::int64_t>(run.training.epochs - network->epoch(), 0),
                      interrupt.token());
        });
        interrupted = example::onAnyNode(nodes, interrupt.requested());
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
        example::writeHereOrElsewhere(run.training.model, [&](const std::filesystem::path& path) {
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

  Results results{
      .test = {}, .epochs = network->epoch(), .interrupted = interrupted, .task = network->task()};
  const auto print = [&](std::string_view part, const AnyEvaluation& scores) {
    fmt::print("{}: {} on {}\n", part, scores.line(), plural(scores.examples(), "example"));
  };
  if (data.validation) {
    const auto scores = wrapper.evaluateTask(*data.validation);
    print("validation", scores);
    if (const auto remark = guessRemark(scores, network->inputDescription(), data.classes); !remark.empty())
      logWarning("{}", remark);
  }
  if (data.test) {
    results.test = wrapper.evaluateTask(*data.test);
    const auto [score, value] = results.test->mainScore();
    watching.result(std::string(score), value);
    print("test", *results.test);
  }
  fmt::print("saved: {}{}\n", run.training.model,
             results.interrupted ? "; interrupted, and training.resume continues from there" : "");
  if (!options.json.empty()) writeResults(options.json, run, results, watchers, wrapper.plan());
  return status;
}

}  // namespace

int train(const Call& call) {
  Options options;
  example::CommandLine line(kIntroduction);
  line.group("Options");
  describeSets(line, options.sets);
  line.add("json", options.json, "FILE", "write the run and its results");
  line.flag("watch", options.watch, "draw a row for each worker and the curve of the score in the terminal");
  line.flag("quiet", options.quiet, "print the result only");
  if (!readOptions(line, call)) return 0;
  example::WatchOptions::check(line);
  options.runFile = fileOf(call, "a run file such as run.json");
  const RunFile run = RunFile::read(options.runFile.string(), options.sets);
  return example::runOn(devicesOf(run.training), [&] { return trainRun(run, options); });
}

}  // namespace program
