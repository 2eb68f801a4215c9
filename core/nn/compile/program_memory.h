#pragma once

#include "muster/core/nn/compile/program_graph.h"

namespace muster::detail {

/// The memory of a program's activations and gradients, as bytes.
struct ProgramMemory {
  Tensor activations, gradients;
};

/// Places all values of a graph, and their gradients if `training`, and binds the nodes to them; values with
/// disjoint lifetimes share memory. Also decides which nodes use the side stream.
ProgramMemory placeValues(ProgramGraph& graph, bool training, Context& context);

}  // namespace muster::detail
