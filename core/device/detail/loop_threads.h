#pragma once

namespace muster {

/// Parallel loops of a thread keep their threads for its next loops. A child of fork() lacks them, but the
/// OpenMP library would wait for them for ever. Call it before the calling thread's loops use `threads`.
/// @throws InvalidArgument in a child of fork(), if the thread that called fork() had such threads.
void requireOwnLoopThreads(int threads);

/// Whether loops of several threads may run on the calling thread: false where `requireOwnLoopThreads`
/// throws.
bool canRunLoops();

}  // namespace muster
