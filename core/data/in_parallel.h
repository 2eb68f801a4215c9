#pragma once

#include <cstddef>
#include <functional>

namespace muster {

/// Calls `work(i)` for all i in 0 .. count-1 on several threads, the calling one among them, in any order.
/// Waits for all.
/// @param threads  at most so many; 0: one for each core of the process.
/// @throws what `work` throws first by its index; then it may not have been called for larger ones.
void inParallel(std::size_t count, const std::function<void(std::size_t)>& work, int threads = 0);

}  // namespace muster
