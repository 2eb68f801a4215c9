#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "muster/parallel/nodes.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/support/virtual_network.h"

// Runs trainings over nodes that are threads of this process.

namespace muster::test {

/// The program of one node.
using NodeProgram = std::function<void(Nodes)>;

/// @return [node] what it throws; "" if nothing.
inline std::vector<std::string> onNodes(VirtualNetwork& network, std::chrono::milliseconds silence,
                                        const NodeProgram& program) {
  std::vector<std::string> problems(static_cast<std::size_t>(network.nodes()));
  std::vector<std::jthread> threads;
  for (int n = 0; n < network.nodes(); ++n)
    threads.emplace_back([&, n] {
      try {
        program(Nodes([&network, n] { return network.transport(n); }, silence));
      } catch (const std::exception& error) {
        problems[static_cast<std::size_t>(n)] = error.what();
      }
    });
  threads.clear();
  return problems;
}

inline ParallelWrapper::Builder builderOf(Model& model, int workers, const AnyStrategy& strategy) {
  auto builder = ParallelWrapper::Builder(model);
  builder.workers(workers).pinThreads(false).strategy(strategy);
  return builder;
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

struct Places {
  int nodes, workers;
};

}  // namespace muster::test
