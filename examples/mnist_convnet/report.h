#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/data_sets.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {

inline const std::vector<std::string> kReportFiles{"confusion.txt", "confusion.png", "misclassified.png"};

/// Writes into `directory`, which is made where it is missing: `confusion.txt` with the scores of each class,
/// `confusion.png`, and `misclassified.png`, the mistakes that the network was surest of (not if it made
/// none).
/// @param remark  on the training, for the head of `confusion.txt`; may be empty.
/// @return what was written, for people.
/// @throws muster::FileError.
std::string writeReport(const std::filesystem::path& directory, const muster::Evaluation& evaluation,
                        muster::MultiLayerNetwork& network, DataSets& data, std::string_view remark);

}  // namespace example
