#include "muster/core/nn/compile/memory_plan.h"

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

Lifetimes::Lifetimes(std::size_t count) : roots_(count), uses_(count) {
  std::iota(roots_.begin(), roots_.end(), std::size_t{0});
}

std::size_t Lifetimes::add(const MemoryUse& use) {
  roots_.push_back(roots_.size());
  uses_.push_back(use);
  return roots_.size() - 1;
}

std::size_t Lifetimes::rootOf(std::size_t buffer) const {
  while (roots_[buffer] != buffer) buffer = roots_[buffer];
  return buffer;
}

MemoryPlan Lifetimes::plan() const {
  std::vector<MemoryUse> joined = uses_;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    auto& root = joined[rootOf(i)];
    root.bytes = std::max(root.bytes, uses_[i].bytes);
    root.begin = std::min(root.begin, uses_[i].begin);
    root.end = std::max(root.end, uses_[i].end);
    if (rootOf(i) != i) joined[i].bytes = 0;
  }
  MemoryPlan plan = planMemory(joined);
  for (std::size_t i = 0; i < uses_.size(); ++i) plan.offsets[i] = plan.offsets[rootOf(i)];
  return plan;
}

}  // namespace muster::detail
