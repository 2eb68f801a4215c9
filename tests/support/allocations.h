#pragma once

namespace muster::test {

/// How often this process has allocated with operator new so far, on any thread, but for what a
/// vendor's library allocates inside a call of ours. A program that calls this
/// gets counting allocation functions; all others keep the usual ones.
long allocations();

/// How many of the objects from operator new are still there, whoever allocated them.
long liveObjects();

}  // namespace muster::test
