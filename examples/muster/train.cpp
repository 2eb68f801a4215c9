#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "examples/muster/commands.h"
#include "examples/muster/options.h"
#include "examples/muster/session.h"
#include "examples/support/epoch_record.h"
#include "examples/support/keep_network.h"
#include "examples/support/paths.h"
#include "examples/support/program.h"
#include "examples/support/resumed.h"
#include "examples/support/training_interrupt.h"
#include "examples/support/watching.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/output_path.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/listeners/early_stopping.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/listeners/performance_listener.h"
#include "muster/core/listeners/score_listener.h"

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

/// Keeps the training state that a checkpoint needs beside the model.
struct LastState final : Listener {
  void onFitEnd(Trainer& trainer) override { state = trainer.trainingState(); }
  std::optional<TrainingState> state;  // empty until `fit()` ends on this node
};

std::chrono::nanoseconds minutes(double count) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::ratio<60>>(count));
}

/// The validation data to monitor, or the test data if there are none.
DataSetIterator& watched(LoadedData& data, std::string_view who) {
  require(data.validation || data.test, "{} needs data to monitor: data.validationExamples, or a test set",
          who);
  return data.validation ? *data.validation : *data.test;
}

Monitored monitoredOf(const RunMonitor& m, LoadedData& data, std::string_view who) {
  Monitored monitored{.monitor = m.monitor, .mode = valueNamed<MonitorMode>(who, m.mode)};
  if (m.monitor != Monitor::TrainingScore) monitored.validation = &watched(data, who);
  return monitored;
}

/// Throws muster::NonFiniteScore if the scores up to this iteration show that the training diverged.
using DivergenceCheck = std::function<void(std::int64_t iteration)>;

/// @param scores  of the training.
DivergenceCheck divergenceCheck(const RunFile& run, LoadedData& data, const Network& network,
                                std::shared_ptr<const CollectScoresListener> scores) {
  if (run.data.regression)
    return [scores, labels = example::labelScaleOf(*data.train)](std::int64_t iteration) {
      example::requireNoDivergence(example::scoresUntil(scores->merges(), iteration), labels);
    };
  return [scores, classes = network.outputShapes().back().second.elements()](std::int64_t iteration) {
    example::requireNoDivergence(example::scoresUntil(scores->merges(), iteration), classes);
  };
}

/// The listeners. The PerformanceListener comes first, so that it does not measure the others' work between
/// epochs.
struct Watchers {
  std::shared_ptr<PerformanceListener> performance =
      std::make_shared<PerformanceListener>(PerformanceOptions{.tableAtEnd = false});
  std::shared_ptr<CollectScoresListener> scores = std::make_shared<CollectScoresListener>();
  DivergenceCheck requireNoDivergence;
  std::shared_ptr<LastState> last = std::make_shared<LastState>();
  std::shared_ptr<EarlyStopping> stopping;
  std::shared_ptr<EvaluationListener> tests;
  std::shared_ptr<example::EpochRecord> record;
  Listeners all{performance, scores, last};
};

Watchers watch(const RunFile& run, LoadedData& data, const Network& network, const Options& options) {
  const auto& l = run.listeners;
  Watchers watchers;
  watchers.requireNoDivergence = divergenceCheck(run, data, network, watchers.scores);
  const auto acceptBest = [check = watchers.requireNoDivergence](Trainer& trainer) {
    try {
      check(trainer.model().iteration());
      return true;
    } catch (const NonFiniteScore& diverged) {
      logWarning("the file of the best model is not replaced: {}", diverged.what());
      return false;
    }
  };
  const auto add = [&](auto listener) { watchers.all.push_back(std::move(listener)); };
  if ((l.progress || options.watch) && !options.quiet)
    example::WatchOptions{.terminal = options.watch}.addProgress(watchers.all);
  if (l.scoreEvery > 0) add(std::make_shared<ScoreListener>(l.scoreEvery));
  if (l.testEvery > 0) {
    watchers.tests = std::make_shared<EvaluationListener>(
        watched(data, "listeners.testEvery"),
        EvaluationOptions{.everyEpochs = l.testEvery,
                          .sink = options.quiet ? LineSink([](std::string_view) {}) : LineSink()});
    add(watchers.tests);
  }
  watchers.record = std::make_shared<example::EpochRecord>(watchers.tests);
  add(watchers.record);
  if (const auto& c = l.checkpoints) {
    CheckpointOptions policy{.directory = c->directory,
                             .everyEpochs = c->everyEpochs,
                             .everyIterations = c->everyIterations,
                             .every = minutes(c->everyMinutes),
                             .keepLast = c->keepLast,
                             .keepEveryEpochs = c->keepEveryEpochs,
                             .acceptBest = acceptBest,
                             .resumed = muster::isSameFile(run.training.resume, c->directory),
                             .exclusive = run.training.nodes != "elastic",
                             .notes = notesOf(run)};
    if (c->best) policy.best = monitoredOf(*c->best, data, "listeners.checkpoints.best");
    add(std::make_shared<CheckpointListener>(std::move(policy)));
  }
  if (const auto& e = l.earlyStopping) {
    const auto monitored = monitoredOf(e->monitored, data, "listeners.earlyStopping");
    watchers.stopping =
        std::make_shared<EarlyStopping>(EarlyStoppingOptions{.validation = monitored.validation,
                                                             .monitor = monitored.monitor,
                                                             .mode = monitored.mode,
                                                             .everyEpochs = e->everyEpochs,
                                                             .patience = e->patience,
                                                             .minImprovement = e->minImprovement,
                                                             .maxTime = minutes(e->maxMinutes),
                                                             .restoreBest = e->restoreBest,
                                                             .bestFile = e->bestFile,
                                                             .acceptBest = acceptBest,
                                                             .notes = notesOf(run)});
    add(watchers.stopping);
  }
  return watchers;
}

/// Whether the labels are classes, so that accuracy is defined.
bool classifies(const RunFile& run) {
  return !run.data.regression;
}

/// @param first  whether this is the first node, the only one with a page.
/// @param shared  whether there are others.
/// @throws InvalidArgument if this program was built without a requested module.
example::Watching watchingOf(const RunFile& run, const Watchers& watchers, bool first, bool shared) {
  const auto& l = run.listeners;
  try {
    return example::Watching({.tensorBoard = l.tensorBoard,
                              .shared = shared,
                              .page = l.page && first,
                              .pagePort = static_cast<int>(l.pagePort),
                              .curves = first ? l.curves : "",
                              .group = l.group},
                             watchers.tests);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("listeners: {}", error.what()));
  }
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

/// The options by name, for the page and TensorBoard.
std::vector<HyperParameter> hyperParameters(const RunFile& run) {
  return {{"workers", static_cast<double>(run.training.workers)},
          {"strategy", run.training.strategy},
          {"strategy options", run.training.strategyOptions},
          {"batch", static_cast<double>(run.data.batch)},
          {"seed", static_cast<double>(run.data.seed)}};
}

/// Checks paths before the data are read.
void checkPaths(const Options& options, const RunFile& run, const std::filesystem::path& resumed) {
  auto paths = pathsOf(options.runFile, run, resumed);
  paths.writes("--json", options.json);
  paths.check();
}

struct Results {
  std::optional<Evaluation> test;
  std::int64_t epochs = 0;
  bool interrupted = false;
};

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
  if (results.test) {
    json.put("testAccuracy", results.test->accuracy());
    json.put("testLoss", results.test->loss());
    json.put("f1", results.test->f1());
  }
  watchers.record->write(json);
  const auto& report = watchers.performance->report();
  json.put("seconds", report.seconds);
  json.put("samplesPerSecond", report.samplesPerSecond());
  writeFileAtomically(path, json.text());
}

int trainRun(const RunFile& run, Options options) {
  const auto devices = devicesOf(run.training);
  example::endOnInterrupt(example::kInterruptedBefore);
  const Nodes nodes = nodesOf(run.training);
  const auto isFirst = [&nodes] { return nodes.node() == 0; };  // node 0 prints and writes files
  bool first = isFirst();  // elastic nodes: read again after the training
  options.quiet = options.quiet || !first;
  const auto [resumed, changes] = resumedBy(run, nodes.nodes());
  if (first && !nodes.elastic()) example::requireOwnCheckpoints(checkpointsOf(run), resumed);
  if (first) checkPaths(options, run, resumed);
  example::requireUsable(devices);

  LoadedData data =
      loadData(run.data, run.training.placement, devices.devices, static_cast<int>(run.training.workers));
  const auto network = makeNetwork(run, data);
  if (first) example::requireDiskRoom(run.training.model, example::savedBytes(*network));
  if (first && run.listeners.checkpoints)
    example::requireDiskRoom(run.listeners.checkpoints->directory, example::savedBytes(*network));
  if (first && run.listeners.earlyStopping)
    example::requireDiskRoom(run.listeners.earlyStopping->bestFile, example::savedBytes(*network));
  if (!resumed.empty()) loadState(*network, resumed);
  const std::int64_t begun = network->iteration();
  Watchers watchers = watch(run, data, *network, options);
  const auto watching = watchingOf(run, watchers, first, nodes.nodes() > 1 || nodes.elastic());
  watching.addTo(watchers.all);
  auto wrapper = makeWrapper(run, devices, nodes, *network, watchers.all);
  if (!options.quiet) {
    for (const auto& notice : {devices.notice, data.placed})
      if (!notice.empty()) fmt::print("{}\n", notice);
    fmt::print("data: {}, {} to train with, from {}\n\n{}", data.title,
               plural(data.train->examples().value_or(0), "example"), data.origin, network->summary());
    if (!resumed.empty())
      fmt::print("resuming: {}, with {} finished\n", resumed.string(), plural(network->epoch(), "epoch"));
    else if (!run.training.resume.empty())
      fmt::print("nothing to resume in {}: the training begins\n", run.training.resume);
    if (!changes.empty())
      fmt::print(
          "it was trained with {}: the training continues, but with other bits than without the "
          "change\n",
          changes);
    fmt::print("plan: {}; {} a batch, up to epoch {}\n", wrapper.plan(), plural(run.data.batch, "example"),
               run.training.epochs);
  }

  if (!first && resumed.empty() && !run.training.resume.empty())
    example::logNothingToResume(run.training.resume);
  watching.describe(wrapper.plan(), network->summary());
  watching.options(hyperParameters(run), {"accuracy"});

  example::TrainingInterrupt interrupt;
  bool saved = false;
  example::trainAndSave(
      [&] {
        watching.during([&] {
          example::fitFrom(resumed, [&] {
            wrapper.fit(data.training(), std::max<std::int64_t>(run.training.epochs - network->epoch(), 0),
                        interrupt.token());
          });
        });
      },
      [&](bool failed) {
        if (!isFirst()) return;
        if ((failed || interrupt.requested()) && network->iteration() == begun) {
          fmt::print("ended before the first step: nothing was saved\n");
          return;
        }
        example::requireFiniteOutputs(*network, data.test ? *data.test : *data.train);
        watchers.requireNoDivergence(network->iteration());
        // If early stopping restored the best state, the training state does not belong to the model.
        const bool restored =
            watchers.stopping && run.listeners.earlyStopping->restoreBest && watchers.stopping->best();
        if (!restored && watchers.last->state) network->trainingState() = *watchers.last->state;
        example::writeHereOrElsewhere(run.training.model, [&](const std::filesystem::path& path) {
          saveModel(*network, path, notesOf(run));
        });
        saved = true;
        if (failed) fmt::print("saved: {}, with what was trained before the failure\n", run.training.model);
      },
      learningRateOf(run));
  first = isFirst();
  interrupt.end(saved ? example::kNetworkSaved : first ? example::kNetworkNotSaved : "Interrupted.");
  const bool interrupted = interrupt.requested();
  if (!first && nodes.elastic()) {
    if (!options.quiet)
      fmt::print("this was process {} of the training: process 0 saves the network and tests it\n",
                 nodes.node());
    return 0;
  }
  const bool judged = data.test && classifies(run);
  if (!first) {
    if (judged && (network->iteration() != begun || !interrupted)) wrapper.evaluate(*data.test);
    return 0;
  }
  if (!saved) return kInterruptedExit;

  Results results{.test = {}, .epochs = network->epoch(), .interrupted = interrupted};
  if (judged) {
    results.test = wrapper.evaluate(*data.test);
    watching.result("accuracy", results.test->accuracy());
    fmt::print("test: accuracy {:.4f}, F1 {:.4f} on {}\n", results.test->accuracy(), results.test->f1(),
               plural(results.test->examples(), "example"));
  }
  fmt::print("saved: {}{}\n", run.training.model,
             results.interrupted ? "; interrupted, and training.resume continues from there" : "");
  if (!options.json.empty()) writeResults(options.json, run, results, watchers, wrapper.plan());
  return results.interrupted ? kInterruptedExit : 0;
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
