#pragma once

#include <memory>

#include "muster/parallel/exchange/node_transport.h"

namespace muster {

/// The processes that it has started. Initialises MPI on the thread that calls it, unless the program has
/// done so with MPI_THREAD_SERIALIZED or more, and finalises it when it is destroyed, unless it was
/// abandoned.
/// @throws InvalidArgument for MPI that was initialised with less; NodeFailure if MPI fails.
std::unique_ptr<NodeTransport> makeMpiTransport();

/// Ends all processes of the launcher: for one that has lost another, and cannot finalise MPI.
[[noreturn]] void abortMpi();

}  // namespace muster
