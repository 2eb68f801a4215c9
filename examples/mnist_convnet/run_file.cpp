#include "examples/mnist_convnet/run_file.h"

#include <fmt/format.h>

#include <string_view>

#include "examples/support/resumed.h"
#include "muster/core/base/error.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {
namespace {

using namespace muster;

const std::string kPrefix = "mnist_convnet.";
const std::string kMark = kPrefix + "seed";  // every file has this note

/// @throws FileError for a file of another program.
ModelNotes notesIn(const std::filesystem::path& path) {
  ModelNotes notes = readModelNotes(path);
  if (!notes.contains(kMark)) throw FileError(path, "cannot be resumed: it was not saved by this program");
  return notes;
}

/// By name, as in "--lr".
Settings settingsIn(const ModelNotes& notes) {
  Settings settings;
  for (const auto& [name, value] : notes)
    if (name.starts_with(kPrefix)) settings["--" + name.substr(kPrefix.size())] = value;
  return settings;
}

}  // namespace

Recipe recipeOf(const Options& options, const DataSets& data) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  Recipe recipe{{"data", data.name},
                {"examples", text(*data.train->examples())},
                {"workers", text(options.workers)},
                {"batch", text(options.batch)},
                {"updater", options.updater},
                {"lr", text(options.learningRate)},
                {"l2", text(options.l2)},
                {"seed", text(options.seed)},
                {"threads-per-worker", text(options.threadsPerWorker)}};
  if (options.strategy.empty()) {
    recipe["mode"] = nameOf(options.mode);
    recipe["averaging-frequency"] = text(options.averagingFrequency);
    recipe["average-updaters"] = text(options.averageUpdaters);
  } else {
    recipe["strategy"] = options.strategy;
    recipe["strategy-options"] = options.strategyOptions;
  }
  if (options.mathMode) recipe["math-mode"] = nameOf(*options.mathMode);
  if (options.updater == Nesterovs::kType) recipe["momentum"] = text(options.momentum);
  return recipe;
}

ModelNotes notesOf(const Recipe& recipe) {
  ModelNotes notes;
  for (const auto& [option, value] : recipe) notes[kPrefix + option] = value;
  return notes;
}

CheckpointChoice checkpointsOf(const Options& options) {
  return {.resume = options.resume, .directory = options.checkpointDirectory, .nodes = options.nodes.nodes()};
}

std::filesystem::path fileToResume(const Options& options) {
  auto file = fileToResume(checkpointsOf(options));
  if (!file.empty()) notesIn(file);
  return file;
}

std::string resumeRun(MultiLayerNetwork& network, const std::filesystem::path& file, const Recipe& recipe) {
  const auto mayDiffer = [](std::string_view option) {
    return option == "--workers" || option == "--threads-per-worker";
  };
  auto changes = allowedChanges(file, settingsIn(notesIn(file)), settingsIn(notesOf(recipe)), mayDiffer,
                                "with these options");
  loadState(network, file);
  namingResumedFile(network, [&] { positionIn(network.trainingState()); });
  return changes;
}

std::int64_t batchesTrained(MultiLayerNetwork& network) {
  const auto position = positionIn(network.trainingState());
  return position ? position->nextBatch + static_cast<std::int64_t>(position->trainedLater.size()) : 0;
}

}  // namespace example
