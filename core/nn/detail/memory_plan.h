#pragma once

#include <cstddef>
#include <vector>

namespace muster::detail {

/// A piece of memory that is needed for a while.
struct MemoryUse {
  std::size_t bytes = 0;
  int begin = 0, end = 0;  ///< first and last moment at which it is needed; end >= begin
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // [use]
  std::size_t bytes = 0;             ///< of the whole
};

/// Places uses in one piece of memory, so that no two that are needed at the same moment overlap. Offsets are
/// multiples of 64. The largest are placed first, each at the lowest place that is free while it is needed;
/// of equal ones the earlier in the list. Depends on nothing but `uses`.
/// Source: "greedy by size" in Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net
/// Inference".
MemoryPlan planMemory(const std::vector<MemoryUse>& uses);

}  // namespace muster::detail
