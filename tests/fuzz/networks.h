#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {

/// Small networks that have every layer, updater and schedule between them.
std::vector<MultiLayerConfiguration> smallChains();
ComputationGraphConfiguration smallGraph();

/// Whether a network that is laid out is small enough to be trained here: tensors, values between layers and
/// inputs have at most so many elements together.
bool isSmall(const Network& network, std::int64_t most);

/// The file that `Network::save` writes.
Bytes savedBytes(Network& network);

}  // namespace muster::fuzz
