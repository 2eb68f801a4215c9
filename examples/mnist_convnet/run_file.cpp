#include "examples/mnist_convnet/run_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {
namespace {

using namespace muster;

const std::string kPrefix = "mnist_convnet.";
const std::string kWithinEpoch = kPrefix + "saved-within-epoch";

/// @throws FileError for a file from elsewhere.
ModelNotes notesOf(const std::filesystem::path& path) {
  ModelNotes notes = readModelNotes(path);
  if (!notes.contains(kWithinEpoch))
    throw FileError(path, "cannot be resumed: it was not saved by this program");
  return notes;
}

/// As in "--lr 0.03 (now 0.01)", for each option that differs.
std::vector<std::string> differences(const ModelNotes& saved, const Recipe& now) {
  std::vector<std::string> all;
  const auto savedValue = [&](const std::string& option) {
    const auto found = saved.find(kPrefix + option);
    return found == saved.end() ? std::string("unset") : found->second;
  };
  for (const auto& [option, value] : now)
    if (savedValue(option) != value)
      all.push_back(fmt::format("--{} {} (now {})", option, savedValue(option), value));
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
  if (options.updater == Nesterovs::kType) recipe["momentum"] = text(options.momentum);
  return recipe;
}

void saveRun(MultiLayerNetwork& network, const std::filesystem::path& path, const Recipe& recipe,
             bool withinEpoch) {
  ModelNotes notes{{kWithinEpoch, withinEpoch ? "true" : "false"}};
  for (const auto& [option, value] : recipe) notes[kPrefix + option] = value;
  saveModel(network, path, notes);
}

void checkRun(const std::filesystem::path& path) {
  notesOf(path);
}

bool resumeRun(MultiLayerNetwork& network, const std::filesystem::path& path, const Recipe& recipe) {
  const ModelNotes notes = notesOf(path);
  const auto differing = differences(notes, recipe);
  if (!differing.empty())
    throw FileError(path, fmt::format("cannot be resumed with these options: it was trained with {}",
                                      fmt::join(differing, ", ")));
  loadState(network, path);
  return notes.at(kWithinEpoch) == "true";
}

}  // namespace example
