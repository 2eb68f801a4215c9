#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "examples/muster/compare/base_run.h"
#include "muster/core/comparison/comparison_grid.h"
#include "muster/datasets/source/load_data.h"

namespace comparing {

/// As in "1,200 rows".
std::string counted(std::int64_t count, std::string_view noun);
/// The number of examples; 0 of null.
std::int64_t examplesIn(const std::unique_ptr<muster::DataSetIterator>& data);

/// All examples in the set's own order, in the host's memory.
muster::LoadedData loadData(const BaseRun& base);

/// What `load` makes of data that were read before: its remarks and warnings, which this thread logs, are not
/// repeated.
muster::LoadedData loadAgain(const std::function<muster::LoadedData()>& load);

/// Holds out a test set, and one to validate with, if the run file has none and they are needed.
/// @return a sentence that says so; "" if nothing was held out.
std::string holdOut(BaseRun& base, const muster::ComparisonGrid& grid, muster::LoadedData& data);

/// A checksum of the columns' and classes' names and of the examples of each part, by which a comparison that
/// grows finds that a file has other contents. It depends on nothing but the data and how they are divided:
/// not on batches or the order of a training.
std::string contentsOf(const muster::LoadedData& data);

}  // namespace comparing
