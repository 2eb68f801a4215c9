#pragma once

#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {

/// Small networks that together have every layer, updater and schedule.
std::vector<MultiLayerConfiguration> smallChains();
/// Networks whose layers have enough channels or units for the kernels that small ones do not reach.
std::vector<MultiLayerConfiguration> wideChains();
ComputationGraphConfiguration smallGraph();

/// Whether a laid-out network is small enough to train here: tensors, activations and inputs have at most
/// `most` elements in total.
bool isSmall(const Network& network, std::int64_t most);

/// The file that `Network::save` writes.
Bytes savedBytes(Network& network);

}  // namespace muster::fuzz
