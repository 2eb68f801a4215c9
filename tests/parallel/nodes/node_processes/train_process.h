#pragma once

#include <signal.h>
#include <unistd.h>

#include "tests/parallel/every_rule.h"
#include "tests/parallel/nodes/node_processes/exit_status.h"
#include "tests/parallel/nodes/node_processes/toy.h"

namespace muster::test {

/// What happens to a process in a step: "kill", "stop" or "throw"; any other fate: nothing.
inline void suffer(std::string_view fate) {
  if (fate == "kill") ::kill(::getpid(), SIGKILL);
  if (fate == "stop") ::raise(SIGSTOP);
  if (fate == "throw") throw std::runtime_error("out of coffee");
}

/// Trains a toy by the rule of this name, and writes files with the bits of the model and the exception, each
/// under another name until it is whole.
/// @param own  the path of this process's file of a kind, "bits" or "problem".
/// @param fit  trains.
/// @return the exit status: 3 after an exception; 2 if there is no such rule.
inline int trainProcess(std::string_view rule, const std::function<std::filesystem::path(const char*)>& own,
                        const std::function<void(const AnyStrategy&, ToyModel&)>& fit) {
  for (const auto& one : everyRule()) {
    if (one.name != rule) continue;
    auto model = processToy();
    std::string problem;
    try {
      fit(one.options, model);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    const auto bits = stateBits(model);
    writeWhole(own("bits"), {reinterpret_cast<const char*>(bits.data()), bits.size()});
    writeWhole(own("problem"), problem);
    return problem.empty() ? 0 : 3;
  }
  return 2;
}

}  // namespace muster::test
