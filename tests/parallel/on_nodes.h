#pragma once

#include <type_traits>

#include "muster/parallel/nodes.h"
#include "muster/parallel/training/internals.h"
#include "tests/parallel/builder_of.h"
#include "tests/support/failure.h"
#include "tests/support/on_threads.h"
#include "tests/support/virtual_network.h"

// Runs trainings over nodes that are threads of this process.

namespace muster::test {

/// The program of one node.
using NodeProgram = std::function<void(Nodes)>;

/// @return [node] what it throws; "" if nothing.
inline std::vector<std::string> onNodes(VirtualNetwork& network, std::chrono::milliseconds silence,
                                        const NodeProgram& program) {
  return onThreads(network.nodes(),
                   [&](int n) { program(Nodes([&network, n] { return network.transport(n); }, silence)); });
}

/// Runs a program on every node, and checks that it throws nothing.
inline void onAll(VirtualNetwork& network, const NodeProgram& program) {
  for (const auto& problem : onNodes(network, std::chrono::seconds(30), program)) CHECK(problem == "");
}

inline void onAll(int nodes, const NodeProgram& program) {
  VirtualNetwork network(nodes);
  onAll(network, program);
}

/// @return [node] what the program returns there; it must throw nothing.
template <typename Network, typename Program>
auto fromAll(Network&& network, Program program) {
  using Result = std::invoke_result_t<Program, const Nodes&>;
  static_assert(!std::is_same_v<Result, bool>,
                "bits of a std::vector<bool> share bytes, so threads would race");
  std::vector<Result> results;
  if constexpr (std::is_same_v<std::decay_t<Network>, int>)
    results.resize(static_cast<std::size_t>(network));
  else
    results.resize(static_cast<std::size_t>(network.nodes()));
  onAll(network, [&](const Nodes& here) { results[static_cast<std::size_t>(here.node())] = program(here); });
  return results;
}

/// A training over nodes with so many workers each.
struct Places {
  int nodes, workers;
  int all() const { return nodes * workers; }
  friend std::ostream& operator<<(std::ostream& out, const Places& places) {
    return out << places.nodes << " nodes with " << places.workers << " workers";
  }
};

/// Checks that models on all nodes get the bits of one in a single process that adds up in as many groups.
/// @param make  makes a model.  @param fit  `void fit(ParallelWrapper&, model)` trains it.
/// @param devices  pretended devices of each node; 0: none.
template <typename Make, typename Fit>
void checkLikeOneProcess(const AnyStrategy& rule, const Places& places, Make make, Fit fit, int devices = 0) {
  CAPTURE(rule.make()->describe());
  CAPTURE(places);
  auto together = make();
  auto one = builderOf(together, places.all(), rule).groups(places.nodes).build();
  fit(one, together);
  const auto expected = stateBits(together);
  for (const auto& bits : fromAll(places.nodes, [&](const Nodes& here) {
         auto model = make();
         auto wrapper = builderOf(model, places.workers, rule)
                            .internals({.pretendedDevices = devices})
                            .nodes(here)
                            .build();
         fit(wrapper, model);
         return stateBits(model);
       }))
    CHECK(bits == expected);
}

}  // namespace muster::test
