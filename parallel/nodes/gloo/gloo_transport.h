#pragma once

#include <memory>
#include <string>

#include "muster/parallel/nodes.h"
#include "muster/parallel/nodes/elastic/node_store.h"
#include "muster/parallel/nodes/node_transport.h"

namespace muster {

/// @throws InvalidArgument listing the interfaces unless this machine has this one, with an address.
void requireInterface(const std::string& interface);

/// Connects the nodes by TCP. Blocks SIGPIPE on the calling thread, because the signal would end the process
/// when another node dies.
/// @param store  where nodes find each other, under names that begin with `prefix`; outlives the transport.
/// @throws NodeFailure if not all nodes join; NotConnected for those that cannot be reached.
std::unique_ptr<NodeTransport> makeGlooTransport(const Nodes::Gloo& options, NodeStore& store,
                                                 const std::string& prefix);

}  // namespace muster
