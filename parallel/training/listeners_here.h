#pragma once

#include "muster/core/nn/listener.h"

namespace muster {

/// The listeners that are called on this node: those of all workers, and on node 0 the merged ones.
/// @param report  adds one that logs each merge.
Listeners listenersHere(Listeners listeners, bool report, int node);

}  // namespace muster
