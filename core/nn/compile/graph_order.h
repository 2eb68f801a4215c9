#pragma once

#include <cstddef>
#include <vector>

#include "muster/core/nn/computation_graph.h"

namespace muster::detail {

/// The vertices' indices, each after its inputs; ties keep the configuration's order.
/// @throws InvalidArgument naming a repeated name, an unknown input, the vertices of a cycle, or a vertex
///         that no output needs.
std::vector<std::size_t> orderVertices(const ComputationGraphConfiguration& configuration);

}  // namespace muster::detail
