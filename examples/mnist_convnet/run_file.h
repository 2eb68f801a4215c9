#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "examples/mnist_convnet/options.h"
#include "examples/support/data_sets.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {

/// The options that a trained network's bits depend on, by name, with their values.
using Recipe = std::map<std::string, std::string>;

Recipe recipeOf(const Options& options, const DataSets& data);

/// The recipe as it is kept in a file.
muster::ModelNotes notesOf(const Recipe& recipe);

/// The file that `--resume` means: of a directory, or of `--checkpoint-dir` also if that is not made yet, the
/// newest file that is whole. @return "" if there is none.
/// @throws muster::FileError for a file that this program has not written.
std::filesystem::path fileToResume(const Options& options);

/// Takes over a network of such a file, to train on as if it had never stopped.
/// @throws muster::FileError naming the options that differ, or what is wrong with the file.
void resumeRun(muster::MultiLayerNetwork& network, const std::filesystem::path& file, const Recipe& recipe);

/// Batches of the epoch in progress that are trained.
std::int64_t batchesTrained(muster::MultiLayerNetwork& network);

}  // namespace example
