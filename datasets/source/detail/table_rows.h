#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/datasets/source/data_source.h"
#include "muster/datasets/source/detail/example_hashes.h"
#include "muster/datasets/source/load_data.h"

namespace muster::detail {

/// Reads the table `source.train` and deals its rows to training, validation and test; `source.test` is
/// another table to test with. @param known  as in loadData.  @return hashes of the rows of each part.
/// @throws as loadData.
PartHashes dealTable(const DataSource& source, const InputDescription& known, LoadedData& into);

/// Reads the rows of `source.test` by `into.description`. @return their hashes. @throws as loadData.
std::vector<std::uint64_t> dealTestTable(const DataSource& source, LoadedData& into);

}  // namespace muster::detail
