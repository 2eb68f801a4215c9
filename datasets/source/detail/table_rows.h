#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/datasets/source/data_source.h"
#include "muster/datasets/source/detail/example_hashes.h"
#include "muster/datasets/source/load_data.h"

namespace muster::detail {

/// Reads the table `source.train` and deals its rows to training, validation and test; `source.test` is
/// another table to test with. @param known, part  as in loadData.  @return hashes of the rows of each part.
/// @throws as loadData.
PartHashes dealTable(const DataSource& source, const InputDescription& known, LoadedData& into,
                     std::string_view part = {});

/// Reads the rows of `source.test` by `into.description`. @return their hashes. @throws as loadData.
/// @param logs  whether to log the words that the description does not know.
std::vector<std::uint64_t> dealTestTable(const DataSource& source, LoadedData& into, bool logs = true);

}  // namespace muster::detail
