#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "muster/parallel/nodes/node_link.h"
#include "tests/support/virtual_network.h"

namespace muster::test {

/// Runs `program(link)` on each of some nodes, which are threads. @return [node] what it throws; "": nothing.
inline std::vector<std::string> onLinks(int nodes, const std::function<void(NodeLink&)>& program) {
  VirtualNetwork network(nodes);
  std::vector<std::string> problems(static_cast<std::size_t>(nodes));
  std::vector<std::jthread> threads;
  for (int n = 0; n < nodes; ++n)
    threads.emplace_back([&, n] {
      NodeLink link([&network, n] { return network.transport(n); }, std::chrono::seconds(30));
      try {
        program(link);
      } catch (const std::exception& error) {
        problems[static_cast<std::size_t>(n)] = error.what();
      }
      link.end();
    });
  threads.clear();
  return problems;
}

}  // namespace muster::test
