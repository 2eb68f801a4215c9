// Trains a convolutional network on MNIST with several workers at once, by averaging their parameters: the
// acceptance test of Deeplearning4j's ParallelWrapper. `mnist_convnet --help` lists the options.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "examples/mnist_convnet/options.h"
#include "examples/mnist_convnet/results.h"
#include "examples/mnist_convnet/run_file.h"
#include "examples/mnist_convnet/watchers.h"
#include "examples/support/check_saved.h"
#include "examples/support/data_sets.h"
#include "examples/support/divergence.h"
#include "examples/support/keep_network.h"
#include "examples/support/paths.h"
#include "examples/support/program.h"
#include "examples/support/report.h"
#include "examples/support/training_interrupt.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;

namespace {

using example::Options;

/// Prints unless `--quiet` is given.
template <typename... Args>
void say(const Options& options, fmt::format_string<Args...> text, Args&&... args) {
  if (!options.quiet) fmt::print(text, std::forward<Args>(args)...);
}

/// The network of Deeplearning4j's test, trained as the options say.
MultiLayerConfiguration configurationOf(const Options& options) {
  auto configuration = convnet();
  configuration.seed = static_cast<std::uint64_t>(options.seed);
  configuration.updater = options.makeUpdater();
  configuration.l2 = options.l2;
  return configuration;
}

/// Where a training begins: at the start, or at the position in a file.
struct Start {
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;
  std::int64_t batches = 0;  // trained in the interrupted epoch
  std::filesystem::path file = {};
  std::string changes = {};  // see resumeRun
};

Start begin(MultiLayerNetwork& network, const std::filesystem::path& file, const example::Recipe& recipe) {
  if (file.empty()) return {};
  auto changes = example::resumeRun(network, file, recipe);
  return {network.epoch(), network.iteration(), example::batchesTrained(network), file, std::move(changes)};
}

/// Checks all that it can before the data are read, which may take long. @return the file to resume from, or
/// "".
std::filesystem::path checkBeforehand(const Options& options) {
  const auto resumed = example::fileToResume(options);
  if (options.nodes.node() == 0 && !options.nodes.elastic())
    example::requireNoOtherTraining(example::checkpointsOf(options));
  example::requireOwnCheckpoints(example::checkpointsOf(options), resumed);
  example::Paths paths;
  options.data.addTo(paths);
  paths.reads("--resume", resumed, /*replacedBy=*/"--model");
  paths.writes("--model", options.model);
  paths.writes("--json", options.json);
  paths.writesInto("--report", options.report, example::kReportFiles);
  paths.writesCheckpoints("--checkpoint-dir", options.checkpointDirectory);
  options.watch.addTo(paths);
  paths.check();
  example::requireUsable(options.device);
  return resumed;
}

/// Prints the plan of the training.
void introduce(const Options& options, const example::DataSets& data, const MultiLayerNetwork& network,
               const Start& start, const ParallelWrapper& wrapper) {
  say(options, "data: {}, {} to train with and {} to test with, from {}\n\n{}", data.title,
      plural(*data.train->examples(), "image"), *data.test->examples(), data.origin, network.summary());
  if (!start.file.empty())
    say(options, "resuming: {}, with {} finished{}\n", start.file.string(), plural(start.epoch, "epoch"),
        start.batches > 0 ? fmt::format(", and {} of the next", plural(start.batches, "batch", "batches"))
                          : "");
  else if (!options.resume.empty())
    say(options, "nothing to resume in {}: the training begins\n", options.resume.string());
  if (!start.changes.empty())
    say(options,
        "it was trained with {}: the training continues, but with other bits than without the change\n",
        start.changes);
  const auto epochs = options.epochs - start.epoch;
  if (epochs <= 0)
    return say(options, "nothing is left to train, as --epochs is {}: testing what the file holds\n",
               options.epochs);
  say(options, "plan: {}; {} a batch, {}\n", wrapper.plan(), plural(options.batch, "example"),
      plural(epochs, "epoch"));
}

/// For example "interrupted, with 2 of 5 epochs finished".
std::string interruption(const MultiLayerNetwork& network, const Options& options) {
  return fmt::format("interrupted, with {} of {} finished", network.epoch(), plural(options.epochs, "epoch"));
}

/// Saves the trained network. @return false if Ctrl-C or a failure came before the first step.
bool saveTrained(MultiLayerNetwork& network, const Options& options, const example::Recipe& recipe,
                 const Start& start, const example::Watchers& watchers,
                 const example::DivergenceCheck& diverged, bool cutShort) {
  const bool trained = network.iteration() != start.iteration;
  if (!trained && cutShort) {
    fmt::print("ended before the first step: nothing was saved\n");
    return false;
  }
  diverged.requireNone(network);
  if (watchers.last->state) network.trainingState() = *watchers.last->state;  // makes the file a checkpoint
  example::writeHereOrElsewhere(options.model, [&](const std::filesystem::path& path) {
    saveModel(network, path, example::notesOf(recipe));
  });
  if (network.epoch() < options.epochs)
    fmt::print("{}; saved: {}, and --resume continues from there\n", interruption(network, options),
               options.model.string());
  return true;
}

/// Prints the results and writes the files asked for.
void conclude(const example::Results& results, const Options& options, example::DataSets& data,
              MultiLayerNetwork& network, const ParallelWrapper& wrapper, const example::Watching& watching) {
  fmt::print("{}\n", example::describe(results));
  if (!results.interrupted)
    say(options, "saved: {}; {}\n", options.model.string(),
        example::checkSaved(network, options.model, data, options.batch));
  if (!options.report.empty())
    say(options, "report: {}\n",
        example::writeReport(options.report, results.test, network, data,
                             results.interrupted ? interruption(network, options) : "", watching));
  if (options.json.empty()) return;
  example::writeResults(results, options, data, wrapper, network.configuration());
  say(options, "json: {}\n", options.json.string());
}

int run(const Options& options) {
  const auto started = std::chrono::steady_clock::now();
  const auto resumed = checkBeforehand(options);
  example::endOnInterrupt(example::kInterruptedBefore);

  auto data = example::loadData(options.data, options.batch, options.seed);
  if (!data.notice.empty()) fmt::print("{}\n", data.notice);
  const auto placed = example::placeImages(data, options.placement, options.device.devices, options.workers);
  for (const auto& notice : {options.device.notice, placed})
    if (!notice.empty()) say(options, "{}\n", notice);
  const auto recipe = example::recipeOf(options, data);
  MultiLayerNetwork network(configurationOf(options));
  network.init();
  if (options.nodes.node() == 0)  // it writes the files
    for (const auto& path : {options.model, options.checkpointDirectory})
      example::requireDiskRoom(path, example::savedBytes(network));
  const Start start = begin(network, resumed, recipe);

  auto watchers = example::makeWatchers(options, data, recipe);
  const example::Watching watching(options.watch, watchers.tests);
  watching.addTo(watchers.all);
  auto builder = options.builder(network);
  if (options.strategy.empty()) builder.averageUpdaters(options.averageUpdaters);
  auto wrapper = builder.prefetchBuffer(options.prefetch).listeners(watchers.all).build();
  introduce(options, data, network, start, wrapper);
  if (options.nodes.node() > 0 && resumed.empty() && !options.resume.empty())
    example::logNothingToResume(options.resume);
  watching.describe(wrapper.plan(), network.summary());
  watching.options(example::hyperParameters(options), {"accuracy"});

  const example::DivergenceCheck diverged(network, *data.train);
  example::TrainingInterrupt interrupt;
  bool saved = false, interrupted = false;
  example::trainAndSave(
      [&] {
        watching.during([&] {
          wrapper.fit(*data.train, std::max<std::int64_t>(options.epochs - start.epoch, 0),
                      interrupt.token());
        });
        interrupted = example::onAnyNode(options.nodes, interrupt.requested());
      },  // network now holds the averaged parameters
      [&](bool failed) {
        if (options.nodes.node() > 0) return;  // node 0 writes the files
        saved = saveTrained(network, options, recipe, start, watchers, diverged, failed || interrupted);
        if (failed && saved && network.epoch() >= options.epochs)
          fmt::print("saved: {}\n", options.model.string());
      },
      fmt::format("--lr {}", options.learningRate),
      {options.model, [&](const std::filesystem::path& path) {
         if (options.nodes.node() > 0 || network.iteration() == start.iteration) return false;
         saveModel(network, path, example::notesOf(recipe));
         return true;
       }});
  const bool first = options.nodes.node() == 0;
  if (first)
    interrupt.end(saved);
  else
    interrupt.end();
  const bool cutShort = network.epoch() < options.epochs;
  const int status = interrupted || cutShort ? kInterruptedExit : 0;
  const bool trained = first ? saved : network.iteration() != start.iteration || !cutShort;
  if (!first && options.nodes.elastic()) {
    say(options, "this was process {} of the training: process 0 saves the network and tests it\n",
        options.nodes.node());
    return status;
  }
  if (!trained || (cutShort && options.report.empty() && options.json.empty())) return kInterruptedExit;

  const Evaluation test = wrapper.evaluate(*data.test);  // on all nodes together
  if (!first) return status;
  watching.result("accuracy", test.accuracy());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  conclude({.test = test,
            .training = watchers.performance->report(),
            .epochs = watchers.scores->epochs(),
            .record = *watchers.record,
            .merged = watchers.merges->merged,
            .secondsInAll = seconds.count(),
            .epochsFinished = network.epoch(),
            .interrupted = cutShort},
           options, data, network, wrapper, watching);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  return example::runProgram("mnist_convnet", [&] {
    auto options = example::readOptions(argc, argv);
    if (options) {
      example::endOnInterrupt(example::kInterruptedBefore);
      options->nodes = options->nodeOptions.connect();
      options->quiet = options->quiet || options->nodes.node() > 0;
      const bool first = options->nodes.node() == 0;  // of elastic nodes each is, until they train
      options->watch.shared = options->nodes.nodes() > 1 || options->nodes.elastic();
      options->watch.page = options->watch.page && first;
      if (!first) options->watch.curves.clear();
      options->watch.still = !options->report.empty() && first;
      if (options->watch.still && !options->nodes.elastic())
        options->watch.stillCurves = options->report / example::kReportCurves;
    }
    return options ? example::runOn(options->device, [&] { return run(*options); }) : 0;
  });
}
