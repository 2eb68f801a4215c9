#pragma once

#include <string>
#include <vector>

#include "examples/muster/compare/base_run.h"
#include "muster/core/comparison/comparison_grid.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/source/load_data.h"

namespace comparing {

/// Sentences on data, network and tests.
std::vector<std::string> paragraphsOf(const BaseRun& base, const muster::LoadedData& data,
                                      const muster::ComparisonGrid& grid, muster::Network& network,
                                      const std::string& heldOut);

/// Sentences on arms that merge less often than they say, or whose workers have too few batches.
std::vector<std::string> warningsOf(const BaseRun& base, const muster::ComparisonGrid& grid);

}  // namespace comparing
