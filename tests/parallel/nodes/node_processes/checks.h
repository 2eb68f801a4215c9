#pragma once

#include <sys/wait.h>

#include <regex>

#include "tests/parallel/builder_of.h"
#include "tests/parallel/every_rule.h"
#include "tests/parallel/nodes/node_processes/toy.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/texts.h"

// Checks for trainings over real processes of this machine, with any transport.

namespace muster::test {

/// A training of `node.cpp`.
struct ProcessRun {
  int nodes = 0;
  std::string rule;
  int workers = 0;
  std::string folder;  ///< for the files that the processes write
  std::string fate;    ///< of node 1; "well": none

  /// Arguments of each process.
  std::string arguments() const { return fmt::format("'{}' {} {} {}", rule, workers, folder, fate); }
};

/// The shell's command that starts the processes and waits for them.
using Launcher = std::function<std::string(const ProcessRun&)>;

/// Runs the command. `timeout` kills it and its children after a limit, which is a failure.
/// @return its exit status.
inline int start(const Launcher& launcher, const ProcessRun& run) {
  const auto command = fmt::format("timeout -k 5 300 {} > {}/output 2>&1", launcher(run), run.folder);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline std::string expectedBits(const AnyStrategy& rule, int nodes, int workers, int epochs = 2) {
  auto model = processToy();
  auto data = processToyData(nodes * workers);
  builderOf(model, nodes * workers, rule).groups(nodes).build().fit(data, epochs);
  const auto bits = stateBits(model);
  return {reinterpret_cast<const char*>(bits.data()), bits.size()};
}

/// Checks that both other nodes of three end, name node 1, and have an intact model.
/// @param why  part of the message of nodes that noticed the failure themselves. After the fate "cut", node 1
///             names one of the others.
inline void checkSurvivors(const Launcher& launcher, const std::string& rule, const std::string& fate,
                           std::string_view why) {
  CAPTURE(fate);
  const TemporaryDirectory folder;
  const int status = start(launcher, {3, rule, 1, folder.path().string(), fate});
  const auto output = readFile(folder / "output");
  CAPTURE(output);
  CHECK(status != 124);  // the status of timeout
  for (const int n : {0, 2}) {
    const auto problem = readFile(folder / fmt::format("problem{}", n));
    CHECK_CONTAINS(problem, "node 1 (");
    if (!contains(problem, "is lost, as")) CHECK_CONTAINS(problem, why);
    CHECK(readFile(folder / fmt::format("bits{}", n)).size() == expectedBits(Averaging{}, 1, 1).size());
  }
  if (fate == "cut") CHECK_CONTAINS(readFile(folder / "problem1"), "nothing was heard of node ");
}

/// Checks that the processes get the bits of one process with as many groups and that log lines name them, by
/// a rule for each way of sending: means, messages of different lengths, replicas, and means while workers
/// train; by every rule in `./run soak`.
inline void checkRules(const Launcher& launch, int nodes, int workers) {
  static const std::set<std::string> kWays{"averaging", "shared gradients", "gossip on a ring",
                                           "streaming, int8"};
  for (const auto& rule : everyRule()) {
    if (!runsOverNodes(rule.options, nodes * workers) || (!whole() && !kWays.contains(rule.name))) continue;
    CAPTURE(rule.name);
    const TemporaryDirectory folder;
    const int status = start(launch, {nodes, rule.name, workers, folder.path().string(), "well"});
    const auto output = readFile(folder / "output");
    CAPTURE(output);
    CHECK(status == 0);
    const auto expected = expectedBits(rule.options, nodes, workers);
    for (int n = 0; n < nodes; ++n) {
      CHECK(readFile(folder / fmt::format("problem{}", n)) == "");
      CHECK(readFile(folder / fmt::format("bits{}", n)) == expected);
      const std::regex line(fmt::format(R"(muster: node {} \([^)\n]+\): has connected\n)", n));
      CHECK(std::regex_search(output, line));
    }
  }
}

/// Kills MUSTER_NODE_KILLS nodes, or two, at times drawn from MUSTER_TEST_SEED.
inline void checkKills(const Launcher& launch, std::string_view why) {
  const char* const count = std::getenv("MUSTER_NODE_KILLS");
  const char* const seed = std::getenv("MUSTER_TEST_SEED");
  std::mt19937 random(seed ? static_cast<unsigned>(std::atoi(seed)) : 20261122U);
  const char* const rules[] = {"averaging", "overlapped", "shared gradients", "diloco",
                               "synchronous gradients"};
  for (int i = 0; i < (count ? std::atoi(count) : 2); ++i)
    checkSurvivors(launch, rules[i % 5], fmt::format("kill {}", 1 + random() % 400), why);
}

}  // namespace muster::test
