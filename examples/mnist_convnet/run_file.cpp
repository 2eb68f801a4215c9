#include "examples/mnist_convnet/run_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <vector>

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

/// Options by which a run may differ from the one that it resumes.
bool mayDiffer(std::string_view option) {
  return option == "workers" || option == "threads-per-worker";
}

/// Each as in "--lr 0.03 (now 0.01)".
struct Differences {
  std::vector<std::string> refused, allowed;
};

Differences differencesOf(const ModelNotes& saved, const Recipe& now) {
  Differences all;
  const auto valueIn = [](const auto& options, const std::string& name) {
    const auto found = options.find(name);
    return found == options.end() ? std::string("unset") : found->second;
  };
  std::set<std::string> options;
  for (const auto& [option, value] : now) options.insert(option);
  for (const auto& [name, value] : saved)
    if (name.starts_with(kPrefix)) options.insert(name.substr(kPrefix.size()));
  for (const auto& option : options)
    if (const auto was = valueIn(saved, kPrefix + option), is = valueIn(now, option); was != is)
      (mayDiffer(option) ? all.allowed : all.refused)
          .push_back(fmt::format("--{} {} (now {})", option, was, is));
  return all;
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
  const auto [refused, allowed] = differencesOf(notesIn(file), recipe);
  if (!refused.empty())
    throw FileError(file, fmt::format("cannot be resumed with these options: it was trained with {}",
                                      fmt::join(refused, ", ")));
  loadState(network, file);
  try {
    positionIn(network.trainingState());
  } catch (const InvalidArgument& error) {
    throw FileError(file, fmt::format("cannot be resumed: {}", error.what()));
  }
  return fmt::format("{}", fmt::join(allowed, ", "));
}

std::int64_t batchesTrained(MultiLayerNetwork& network) {
  const auto position = positionIn(network.trainingState());
  return position ? position->nextBatch + static_cast<std::int64_t>(position->trainedLater.size()) : 0;
}

}  // namespace example
