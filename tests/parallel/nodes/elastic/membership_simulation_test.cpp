// The rules by which elastic processes agree who trains, tried in a simulation: every interleaving
// of three processes' accesses to the store with kills, stops, and lost and late answers, up to a depth, and
// random schedules beyond it. MUSTER_MEMBERSHIP_DEPTH and MUSTER_MEMBERSHIP_SEEDS make it longer.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/parallel/nodes/elastic/membership_search.h"

using namespace muster;
using namespace muster::test;

namespace {

int numberOf(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

struct Start {
  int minNodes;
  std::array<int, World::kProcesses> joins;
};
constexpr Start kStarts[] = {{1, {0, 0, 0}}, {2, {0, 0, 0}}, {1, {0, 0, 6}}, {2, {0, 0, 6}}, {1, {0, 5, 40}}};

}  // namespace

TEST_CASE("every schedule up to a depth, from each moment of a training, keeps the promises of membership") {
  // The short version begins at some moments only.
  const int deep = numberOf("MUSTER_MEMBERSHIP_DEPTH", 0), depth = deep > 0 ? deep : 2;
  const int stride = deep > 0 ? 1 : 23, faults = depth > 4 ? 2 : 1;
  std::size_t states = 0, schedules = 0;
  for (const auto& start : kStarts) {
    Search search;
    World world(start.minNodes, start.joins);
    for (int step = 0; search.violation().empty(); ++step) {
      if (step % stride == 0) search.all(world, depth, faults);
      const auto move = world.fairMove(0);
      if (!move) break;
      world.apply(*move);
    }
    CAPTURE(start.minNodes);
    INFO(search.violation());
    REQUIRE(search.violation().empty());
    states += search.states();
    schedules += search.schedules();
  }
  MESSAGE(fmt::format("{} states, {} schedules to their end", states, schedules));
  CHECK(states > 1000);
}

TEST_CASE("random schedules keep the promises of membership") {
  const int seeds = numberOf("MUSTER_MEMBERSHIP_SEEDS", 200), first = numberOf("MUSTER_MEMBERSHIP_SEED", 1);
  for (int seed = first; seed < first + seeds; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto& start = kStarts[random() % std::size(kStarts)];
    Search search;
    search.random(World(start.minNodes, start.joins), random, 1 + static_cast<int>(random() % 4));
    CAPTURE(seed);
    INFO(search.violation());
    REQUIRE(search.violation().empty());
  }
}
