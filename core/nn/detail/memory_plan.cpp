#include "muster/core/nn/detail/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace muster::detail {
namespace {

constexpr std::size_t kAlignment = 64;

struct Placed {
  std::size_t offset, bytes;
  int begin, end;
};

bool meet(const Placed& placed, const MemoryUse& use) {
  return placed.begin <= use.end && use.begin <= placed.end;
}

}  // namespace

MemoryPlan planMemory(const std::vector<MemoryUse>& uses) {
  std::vector<std::size_t> order(uses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return uses[i].bytes; });

  MemoryPlan plan{.offsets = std::vector<std::size_t>(uses.size())};
  std::vector<Placed> placed;  // by offset
  for (const std::size_t i : order) {
    const std::size_t bytes = (uses[i].bytes + kAlignment - 1) / kAlignment * kAlignment;
    std::size_t offset = 0;
    for (const auto& other : placed) {
      if (!meet(other, uses[i])) continue;
      if (offset + bytes <= other.offset) break;  // fits into the gap before it
      offset = std::max(offset, other.offset + other.bytes);
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto place = std::ranges::upper_bound(placed, offset, {}, &Placed::offset);
    placed.insert(place, {offset, bytes, uses[i].begin, uses[i].end});
  }
  return plan;
}

}  // namespace muster::detail
