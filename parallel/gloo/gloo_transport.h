#pragma once

#include <memory>

#include "muster/parallel/exchange/node_transport.h"
#include "muster/parallel/nodes.h"

namespace muster {

/// Connects the nodes with each other by TCP. Blocks SIGPIPE on the thread that calls it, which it would end
/// the process on when another node dies.
/// @throws InvalidArgument naming an option; NodeFailure if not all nodes come.
std::unique_ptr<NodeTransport> makeGlooTransport(const Nodes::Gloo& options);

}  // namespace muster
