#pragma once

#include <cstddef>
#include <vector>

#include "muster/core/nn/computation_graph.h"

namespace muster::detail {

/// The vertices' indices in an order in which each comes after those that it reads; of several that could
/// come next, the first in the configuration.
/// @throws InvalidArgument naming a name that is used twice, a vertex that reads what is not there, the
///         vertices of a cycle, or one that leads to no output.
std::vector<std::size_t> orderVertices(const ComputationGraphConfiguration& configuration);

}  // namespace muster::detail
