#pragma once

#include <memory>

#include "muster/parallel/nodes/node_transport.h"

namespace muster {

/// Makes a transport between the processes that MPI has started. Initialises MPI on the calling thread,
/// unless the program has done so with MPI_THREAD_SERIALIZED or more. The destructor finalises MPI if this
/// call has initialised it, unless the transport was abandoned.
/// @param atFinalize  if the program has initialised MPI: called first in its MPI_Finalize. Must end this
///                    transport.
/// @throws InvalidArgument if MPI was initialised with less, or is finalised; NodeFailure if MPI fails.
std::unique_ptr<NodeTransport> makeMpiTransport(void (*atFinalize)());

/// Ends all processes of the launcher. Called if another node is lost, so that MPI cannot be finalised.
[[noreturn]] void abortMpi();

}  // namespace muster
