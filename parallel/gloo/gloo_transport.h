#pragma once

#include <memory>
#include <string>

#include "muster/parallel/elastic/node_store.h"
#include "muster/parallel/exchange/node_transport.h"
#include "muster/parallel/nodes.h"

namespace muster {

/// @throws InvalidArgument, with those that are there, unless this machine has it, with an address.
void requireInterface(const std::string& interface);

/// Connects the nodes with each other by TCP. Blocks SIGPIPE on the thread that calls it, which it would end
/// the process on when another node dies.
/// @param store  where they meet, under names that begin with `prefix`; must outlive it.
/// @throws NodeFailure if not all nodes come; NotConnected for those that cannot be reached.
std::unique_ptr<NodeTransport> makeGlooTransport(const Nodes::Gloo& options, NodeStore& store,
                                                 const std::string& prefix);

}  // namespace muster
