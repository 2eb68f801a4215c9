#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "examples/mnist_convnet/options.h"
#include "examples/support/data_sets.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {

/// The options that a trained network's bits depend on, by name, with their values.
using Recipe = std::map<std::string, std::string>;

Recipe recipeOf(const Options& options, const DataSets& data);

/// Saves the network with its recipe.
/// @param withinEpoch  it was interrupted there.
/// @throws muster::FileError; then the file is what it was before.
void saveRun(muster::MultiLayerNetwork& network, const std::filesystem::path& path, const Recipe& recipe,
             bool withinEpoch);

/// @throws muster::FileError for a file that `saveRun` has not written.
void checkRun(const std::filesystem::path& path);

/// Takes over state and counters of a network saved by `saveRun`, to train on as if it had never stopped.
/// @return whether it was saved within an epoch: that epoch will begin again.
/// @throws muster::FileError naming the options that differ, or what is wrong with the file.
bool resumeRun(muster::MultiLayerNetwork& network, const std::filesystem::path& path, const Recipe& recipe);

}  // namespace example
