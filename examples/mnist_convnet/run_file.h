#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "examples/mnist_convnet/options.h"
#include "examples/support/checkpoints.h"
#include "examples/support/data_sets.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {

/// The options that decide a trained network's bits, by name, with their values.
using Recipe = std::map<std::string, std::string>;

Recipe recipeOf(const Options& options, const DataSets& data);

/// The recipe as notes of a model file.
muster::ModelNotes notesOf(const Recipe& recipe);

/// What `--resume` and `--checkpoint-dir` name.
CheckpointChoice checkpointsOf(const Options& options);

/// As fileToResume(const CheckpointChoice&). @throws muster::FileError also for a file of another program.
std::filesystem::path fileToResume(const Options& options);

/// Restores the network from such a file, so that training continues as if it had never stopped.
/// @return the options that differ and may, for example "--workers 2 (now 4)"; "" if none differ. They change
///         the bits, but not what is trained.
/// @throws muster::FileError naming other options that differ, or the file's error.
std::string resumeRun(muster::MultiLayerNetwork& network, const std::filesystem::path& file,
                      const Recipe& recipe);

/// Number of batches already trained in the current epoch.
std::int64_t batchesTrained(muster::MultiLayerNetwork& network);

}  // namespace example
