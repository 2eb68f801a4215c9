#pragma once

#include <memory>

#include "muster/core/nn/network.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/run/run_file.h"

namespace muster::detail {

/// The network of a run file, with initial weights or those of `training.initialModel`; takes missing shapes
/// from the data. @throws InvalidArgument for data that do not fit, naming both; FileError.
std::unique_ptr<Network> makeNetwork(const RunFile& run, LoadedData& data);

/// As above, with the run's own data.
std::unique_ptr<Network> networkForData(const RunFile& run);

}  // namespace muster::detail
