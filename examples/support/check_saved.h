#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "examples/support/data_sets.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/network.h"

namespace example {

/// Loads a network that was saved, and asks both about all that `data` gives.
/// @return what to say of it: that the outputs are the same.
/// @throws muster::FileError where the file cannot be read, or the outputs are others.
std::string checkSaved(muster::Network& network, const std::filesystem::path& path,
                       muster::DataSetIterator& data);
/// The same for a first batch of the images to test with.
std::string checkSaved(muster::Network& network, const std::filesystem::path& path, const DataSets& data,
                       std::int64_t batch);

}  // namespace example
