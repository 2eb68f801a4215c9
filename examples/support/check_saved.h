#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "examples/support/data_sets.h"
#include "muster/core/nn/network.h"

namespace example {

/// Loads the saved network and compares its outputs for the first batch of test images with the original's.
/// @return a message that the outputs are equal.
/// @throws muster::FileError if the file cannot be read or the outputs differ.
std::string checkSaved(muster::Network& network, const std::filesystem::path& path, const DataSets& data,
                       std::int64_t batch);

}  // namespace example
