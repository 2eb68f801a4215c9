#pragma once

#include <cstddef>

namespace muster::test {

/// Waits until all other threads of this process sleep. They may still be cleaning up when the call that used
/// them returns. @return the number of threads, this one included.
std::ptrdiff_t awaitRest();

/// Live objects from operator new once all other threads sleep.
long liveObjectsAtRest();

}  // namespace muster::test
