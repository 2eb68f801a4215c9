#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace muster::detail {

/// Memory that is needed during an interval.
struct MemoryUse {
  std::size_t bytes = 0;
  int begin = 0, end = 0;  ///< first and last time of use; end >= begin
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // [use]
  std::size_t bytes = 0;             ///< in total
};

/// Places uses in one buffer, so that no two with overlapping intervals overlap. Offsets are multiples of 64.
/// The largest use is placed first, at the lowest offset that is free during its interval; of equal ones the
/// first in the list. Depends only on `uses`.
/// Source: "greedy by size" in Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net
/// Inference".
MemoryPlan planMemory(const std::vector<MemoryUse>& uses);

/// Buffer lifetimes; aliased buffers share one allocation (union-find).
class Lifetimes {
 public:
  explicit Lifetimes(std::size_t count);
  /// @return the index of the new buffer.
  std::size_t add(const MemoryUse& use);
  void set(std::size_t buffer, const MemoryUse& use) { uses_[buffer] = use; }
  void extend(std::size_t buffer, int moment) { uses_[buffer].end = std::max(uses_[buffer].end, moment); }
  /// Makes `buffer` share the memory of `other`.
  void join(std::size_t buffer, std::size_t other) { roots_[rootOf(buffer)] = rootOf(other); }
  MemoryPlan plan() const;

 private:
  std::size_t rootOf(std::size_t buffer) const;

  std::vector<std::size_t> roots_;  // [buffer] itself, or another of those that share its memory
  std::vector<MemoryUse> uses_;     // [buffer]
};

}  // namespace muster::detail
