// Trainings over real processes of this machine that find each other in a directory, by Gloo.
#include <filesystem>
#include <thread>

#include "muster/parallel/exchange/node_transport.h"
#include "muster/parallel/nodes.h"
#include "tests/parallel/node_processes/checks.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

std::string byGloo(const ProcessRun& run) {
  return fmt::format("{} {} {}/store '{}' {} {}", MUSTER_LAUNCH, run.nodes, run.folder, run.fate,
                     MUSTER_GLOO_NODE, run.arguments());
}

}  // namespace

TEST_CASE("two processes of two workers have the bits of one process, by a rule of each kind") {
  checkRules(byGloo, 2, 2);
}

TEST_CASE("three processes of one worker have the bits of one process, by a rule of each kind") {
  checkRules(byGloo, 3, 1);
}

TEST_CASE("the log lines of each process name it") {
  checkLogLines(byGloo);
}

TEST_CASE("a process that is killed at a random moment ends the training of the others, which name it") {
  checkKills(byGloo, "is lost: the connection is broken");
}

TEST_CASE("a process that is stopped ends the training of the others") {
  checkSurvivors(byGloo, "averaging", "stop", "nothing was heard of");
}

TEST_CASE("a process whose step throws ends the training of the others") {
  for (const std::string rule : {"averaging", "gossip on a ring"})
    checkSurvivors(byGloo, rule, "throw", "has failed");
}

TEST_CASE("invalid options of Gloo are refused by name") {
  const TemporaryDirectory folder;
  const auto store = folder.path().string();
  const auto refusal = [](const Nodes::Gloo& options) {
    return thrown<InvalidArgument>([&] { Nodes::gloo(options); });
  };
  CHECK(refusal({.store = store, .node = 2, .nodes = 2, .interface = "lo"}) ==
        "Gloo: there is no node 2 among 2");
  CHECK(refusal({.store = store, .nodes = 0, .interface = "lo"}) == "Gloo: nodes must be at least 1, got 0");
  CHECK(refusal({.nodes = 2, .interface = "lo"}) ==
        "Gloo: store: name a directory that all nodes can reach, or a Redis server");
  CHECK(refusal({.store = store, .nodes = 2})
            .starts_with("Gloo: interface: name the network interface to listen on; this machine has "));
  CHECK(refusal({.store = store, .nodes = 2, .interface = "nowhere0"})
            .starts_with("Gloo: interface: there is no nowhere0 with an address here; this machine has "));
}

TEST_CASE("one node needs no network") {
  const TemporaryDirectory folder;
  const auto nodes = Nodes::gloo({.store = (folder / "new" / "store").string(), .interface = "lo"});
  CHECK(nodes.nodes() == 1);
  CHECK(nodes.link() == nullptr);
}

TEST_CASE("a node that does not connect is named, and no files are left") {
  const TemporaryDirectory folder;
  const auto store = folder.path().string();
  const auto wait = [&](int node, int nodes) {
    return thrown<NodeFailure>([&] {
      Nodes::gloo({.store = store, .node = node, .nodes = nodes, .interface = "lo", .patience = 50ms});
    });
  };
  CHECK(wait(0, 2) == fmt::format("not all nodes have joined {} in 0.05 s: node 1 is missing", store));
  CHECK(wait(1, 3) ==
        fmt::format("not all nodes have joined {} in 0.05 s: node 0 is missing; node 2 is missing", store));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("files of a killed run have no effect on later nodes") {
  const TemporaryDirectory folder;
  const auto store = folder.path().string();
  const auto wait = [&](int node, int nodes) {
    return thrown<NodeFailure>([&] {
      Nodes::gloo({.store = store, .node = node, .nodes = nodes, .interface = "lo", .patience = 200ms});
    });
  };
  // Creates files left by killed processes: node 1 of a training, and a session of another training.
  const auto leave = [&](int nodes) {
    std::filesystem::remove(folder / "node-1");
    std::string left;
    {
      const std::jthread killed([&] { wait(1, nodes); });
      while ((left = readFile(folder / "node-1")).empty()) std::this_thread::sleep_for(1ms);
    }
    writeFile(folder / "node-1", left);
  };
  leave(3);
  CHECK(wait(0, 2) ==
        fmt::format("not all nodes have joined {} in 0.2 s: node 1 counts 3 nodes, and this one 2", store));
  leave(2);
  CHECK(wait(0, 2) ==
        fmt::format("not all nodes have joined {} in 0.2 s: node 1 has left a file and does not answer",
                    store));
  writeFile(folder / "session", "muster-rendezvous-1 00 complete\n0123456789abcdef\n0123456789abcdef\n");
  std::vector<int> seen(2);
  {
    std::vector<std::jthread> nodes;
    for (int n = 0; n < 2; ++n)
      nodes.emplace_back([&, n] {
        const auto connection = Nodes::gloo({.store = store, .node = n, .nodes = 2, .interface = "lo"});
        seen[static_cast<std::size_t>(n)] = connection.nodes();
      });
  }
  CHECK(seen == std::vector{2, 2});
  CHECK(std::filesystem::is_empty(folder.path()));
}
