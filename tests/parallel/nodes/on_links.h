#pragma once

#include "muster/parallel/nodes/node_link.h"
#include "tests/support/on_threads.h"
#include "tests/support/virtual_network.h"

namespace muster::test {

/// Runs `program(link)` on each node, which is a thread. @return [node] what it throws; "": nothing.
inline std::vector<std::string> onLinks(VirtualNetwork& network, std::chrono::milliseconds silence,
                                        const std::function<void(NodeLink&)>& program) {
  return onThreads(network.nodes(), [&](int n) {
    NodeLink link([&network, n] { return network.transport(n); }, silence);
    program(link);
  });
}

inline std::vector<std::string> onLinks(int nodes, const std::function<void(NodeLink&)>& program) {
  VirtualNetwork network(nodes);
  return onLinks(network, std::chrono::seconds(30), program);
}

}  // namespace muster::test
