#include "muster/core/nn/compile/memory_plan.h"

#include "muster/core/base/random.h"
#include "tests/support/test.h"

using muster::RandomStream;
using muster::detail::Lifetimes;
using muster::detail::MemoryPlan;
using muster::detail::MemoryUse;
using muster::detail::planMemory;

namespace {

/// The peak of bytes in use at the same time: the lower bound of every plan.
std::size_t mostAtOnce(const std::vector<MemoryUse>& uses) {
  std::size_t most = 0;
  for (const auto& now : uses) {
    std::size_t bytes = 0;
    for (const auto& use : uses)
      if (use.begin <= now.begin && now.begin <= use.end) bytes += (use.bytes + 63) / 64 * 64;
    most = std::max(most, bytes);
  }
  return most;
}

void checkApart(const std::vector<MemoryUse>& uses, const MemoryPlan& plan) {
  for (std::size_t i = 0; i < uses.size(); ++i) {
    CHECK(plan.offsets[i] % 64 == 0);
    CHECK(plan.offsets[i] + uses[i].bytes <= plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together = uses[i].begin <= uses[j].end && uses[j].begin <= uses[i].end;
      const bool overlap = plan.offsets[i] < plan.offsets[j] + uses[j].bytes &&
                           plan.offsets[j] < plan.offsets[i] + uses[i].bytes;
      CHECK_FALSE((together && overlap && uses[i].bytes > 0 && uses[j].bytes > 0));
    }
  }
}

}  // namespace

TEST_CASE("buffers with overlapping lifetimes do not overlap in memory, others share it") {
  // A chain in evaluation: each activation is read by the next layer only.
  const std::vector<MemoryUse> chain{{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}};
  const auto plan = planMemory(chain);
  checkApart(chain, plan);
  CHECK(plan.bytes == 256);
  CHECK(plan.offsets == std::vector<std::size_t>{0, 128, 0, 128});
}

TEST_CASE("a plan fills gaps, and an empty buffer takes no memory") {
  const std::vector<MemoryUse> uses{{640, 0, 9}, {320, 0, 2}, {64, 3, 9}, {192, 3, 5}, {0, 0, 9}};
  const auto plan = planMemory(uses);
  checkApart(uses, plan);
  CHECK(plan.bytes == 640 + 320);
  CHECK(planMemory({}).bytes == 0);
}

TEST_CASE("buffers that share memory are placed as one, with the largest size and the joined lifetime") {
  Lifetimes lifetimes(3);
  lifetimes.set(0, {.bytes = 100, .begin = 0, .end = 1});
  lifetimes.set(1, {.bytes = 300, .begin = 1, .end = 2});
  lifetimes.set(2, {.bytes = 100, .begin = 3, .end = 4});
  const auto added = lifetimes.add({.bytes = 64, .begin = 5, .end = 5});
  CHECK(lifetimes.plan().offsets == std::vector<std::size_t>{320, 0, 0, 0});
  lifetimes.join(1, 0);
  CHECK(lifetimes.plan().offsets == std::vector<std::size_t>{0, 0, 0, 0});
  CHECK(lifetimes.plan().bytes == 320);
  lifetimes.extend(0, 3);
  CHECK(lifetimes.plan().offsets == std::vector<std::size_t>{0, 0, 320, 0});
  CHECK(lifetimes.plan().bytes == 448);
  lifetimes.join(added, 1);
  lifetimes.join(2, added);
  CHECK(lifetimes.plan().offsets == std::vector<std::size_t>{0, 0, 0, 0});
}

TEST_CASE("random lifetimes never overlap, and take little more memory than the lower bound") {
  const RandomStream random(3, "lives");
  std::uint64_t draw = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<MemoryUse> uses;
    for (int i = 0; i < 40; ++i) {
      const int begin = static_cast<int>(random.below(draw++, 60));
      uses.push_back({.bytes = random.below(draw++, 5000),
                      .begin = begin,
                      .end = begin + static_cast<int>(random.below(draw++, 12))});
    }
    const auto plan = planMemory(uses);
    checkApart(uses, plan);
    CHECK(plan.bytes <= mostAtOnce(uses) * 3 / 2);
  }
}
