#pragma once

#include <cstddef>

namespace muster::cpu {

/// Checks that this process may still map `bytes`. oneDNN does not check each allocation of its code
/// generator: without memory it writes to a null pointer, and the process ends by SIGSEGV. So call this
/// before calls that generate code; other threads may still take the memory meanwhile.
/// @throws OutOfMemory if a limit on addresses or data (ulimit -v, -d) leaves no room.
void requireCodeRoom(std::size_t bytes);

/// Enough for the code of the primitives that one operation plans.
inline constexpr std::size_t kPlanCodeBytes = std::size_t{8} << 20;

/// Lets oneDNN generate the code of all its float32 matrix products now: it would do so in the first product,
/// where a failure ends the process. Takes a few milliseconds once per process, later calls nothing. Any
/// thread may call it.
/// @throws OutOfMemory. The next call then tries again.
void generateProducts();

}  // namespace muster::cpu
