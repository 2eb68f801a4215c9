#pragma once

#include <filesystem>
#include <string>

#include "examples/support/data_sets.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {

/// Writes into `directory`, which exists: `confusion.txt` with the scores of each class, `confusion.png`, and
/// `misclassified.png`, the mistakes that the network was surest of (not if it made none).
/// @return what was written, for people.
/// @throws muster::FileError.
std::string writeReport(const std::filesystem::path& directory, const muster::Evaluation& evaluation,
                        muster::MultiLayerNetwork& network, DataSets& data);

}  // namespace example
