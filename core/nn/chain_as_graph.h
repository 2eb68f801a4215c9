#pragma once

#include <memory>

#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"

namespace muster {

/// A graph with the layers and the state of a chain, with one input, `features`: it has the same outputs and
/// goes on training to the same bits. To build on a trained chain: a graph takes further vertices.
/// @throws InvalidArgument if the chain is not initialised.
std::unique_ptr<ComputationGraph> asGraph(MultiLayerNetwork& chain);

}  // namespace muster
