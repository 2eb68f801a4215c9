#pragma once

#include "muster/parallel/nodes.h"

namespace example {

/// The processes that a launcher has started; one node without it. @throws muster::InvalidArgument if there
/// is a launcher and this build has no MPI.
muster::Nodes launchedNodes();

}  // namespace example
