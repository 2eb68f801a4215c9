#pragma once

#include <chrono>
#include <thread>

#include "muster/parallel/nodes/node_link.h"
#include "tests/support/virtual_network.h"

namespace muster::test {

/// Runs `program(link)` on each node, which is a thread. @return [node] what it throws; "": nothing.
inline std::vector<std::string> onLinks(VirtualNetwork& network, std::chrono::milliseconds silence,
                                        const std::function<void(NodeLink&)>& program) {
  std::vector<std::string> problems(static_cast<std::size_t>(network.nodes()));
  std::vector<std::jthread> threads;
  for (int n = 0; n < network.nodes(); ++n)
    threads.emplace_back([&, n] {
      try {
        NodeLink link([&network, n] { return network.transport(n); }, silence);
        program(link);
      } catch (const std::exception& error) {
        problems[static_cast<std::size_t>(n)] = error.what();
      }
    });
  threads.clear();
  return problems;
}

inline std::vector<std::string> onLinks(int nodes, const std::function<void(NodeLink&)>& program) {
  VirtualNetwork network(nodes);
  return onLinks(network, std::chrono::seconds(30), program);
}

}  // namespace muster::test
