#include "muster/parallel/nodes/gloo/rendezvous.h"

#include <latch>
#include <thread>

#include "muster/parallel/nodes/launched_processes.h"
#include "muster/parallel/nodes/node_transport.h"
#include "tests/parallel/nodes/stored_texts.h"
#include "tests/support/environment.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

struct Outcome {
  std::string word, problem;
};

/// Processes [node of nodes] that join with one prefix, and leave once all have returned. @return what each
/// gets.
std::vector<Outcome> joined(StoredTexts& store, const std::vector<std::pair<int, int>>& processes,
                            std::chrono::milliseconds patience = 20s) {
  std::vector<Outcome> outcomes(processes.size());
  std::latch returned(static_cast<std::ptrdiff_t>(processes.size()));
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < processes.size(); ++i)
    threads.emplace_back([&, i] {
      Rendezvous rendezvous(store, "run-", processes[i].first, processes[i].second);
      outcomes[i].problem = thrown<NodeFailure>([&] { outcomes[i].word = rendezvous.awaitAll(patience); });
      returned.arrive_and_wait();
    });
  threads.clear();
  return outcomes;
}

}  // namespace

TEST_CASE("nodes that join get the same word, which differs from run to run, and leave no texts") {
  StoredTexts store;
  std::string before;
  for (int run = 0; run < 2; ++run) {
    const auto outcomes = joined(store, {{0, 3}, {1, 3}, {2, 3}});
    for (const auto& [word, problem] : outcomes) {
      CHECK(problem == "");
      CHECK(word == outcomes[0].word);
    }
    CHECK(outcomes[0].word != "");
    CHECK(outcomes[0].word != before);
    before = outcomes[0].word;
    CHECK(store.names("").empty());
  }
}

TEST_CASE("texts of a killed run mislead no node") {
  StoredTexts store;
  store.put("run-node-0", "muster-rendezvous-2 dead0 old 2 7\n");
  store.put("run-node-1", "muster-rendezvous-2 dead1 old 2 7\n");
  store.put("run-session", "muster-rendezvous-2 old complete\ndead0\ndead1\n");
  const auto outcomes = joined(store, {{0, 2}, {1, 2}});
  CHECK(outcomes[0].problem == "");
  CHECK(outcomes[0].word == outcomes[1].word);
  CHECK(outcomes[0].word != "old");
}

TEST_CASE("a node that does not join is named") {
  StoredTexts store;
  store.put("run-node-2", "muster-rendezvous-2 dead old 3 7\n");  // of a killed process
  store.put("run-node-1", "muster-rendezvous-1 x");
  CHECK(joined(store, {{0, 3}}, 50ms)[0].problem ==
        "not all nodes have joined a map in 0.05 s: node 1 runs another version of muster");
  store.erase("run-node-1");
  CHECK(joined(store, {{0, 3}}, 50ms)[0].problem ==
        "not all nodes have joined a map in 0.05 s: node 1 is missing");
}

TEST_CASE("the number of launched processes is the launcher's, or 1") {
  const Environment mpi("OMPI_COMM_WORLD_SIZE", std::nullopt), pmi("PMI_SIZE", std::nullopt);
  {
    const Environment nodes("MUSTER_NODES", std::nullopt);
    CHECK(launchedProcesses() == "1");
  }
  const Environment nodes("MUSTER_NODES", "3");
  CHECK(launchedProcesses() == "3");
  const Environment launcher("PMI_SIZE", "4");
  CHECK(launchedProcesses() == "4");
}
