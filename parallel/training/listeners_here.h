#pragma once

#include "muster/core/nn/listener.h"

namespace muster {

/// Whether this is a merged listener that is called on every node.
bool isOnAllNodes(const Listener& listener);

/// The listeners that are called on this node: those of all workers, those of all nodes, and on node 0 the
/// other merged ones, in the order of their calls.
/// @param report  adds a listener that logs each merge.
Listeners listenersHere(Listeners listeners, bool report, int node);

}  // namespace muster
