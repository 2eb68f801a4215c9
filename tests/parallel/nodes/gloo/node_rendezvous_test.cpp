#include "muster/parallel/nodes/gloo/rendezvous.h"

#include <latch>

#include "muster/parallel/nodes/launched_processes.h"
#include "muster/parallel/nodes/node_transport.h"
#include "tests/parallel/nodes/stored_texts.h"
#include "tests/support/environment.h"
#include "tests/support/on_threads.h"

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
  onThreads(static_cast<int>(processes.size()), [&](int i) {
    const auto [node, nodes] = processes.at(static_cast<std::size_t>(i));
    auto& [word, problem] = outcomes.at(static_cast<std::size_t>(i));
    Rendezvous rendezvous(store, "run-", node, nodes);
    problem = thrown<NodeFailure>([&, &got = word] { got = rendezvous.awaitAll(patience); });
    returned.arrive_and_wait();
  });
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

TEST_CASE("a node that does not join is named, after the patience of the others") {
  const auto problem = [](const std::string& ofNode1, int nodes) {
    StoredTexts store;
    store.put("run-node-2", "muster-rendezvous-2 dead old 3 7\n");  // of a killed process
    if (!ofNode1.empty()) store.put("run-node-1", ofNode1);
    return joined(store, {{0, nodes}}, 50ms)[0].problem;
  };
  const std::string begin = "not all nodes have joined a map in 0.05 s: node 1 ";
  CHECK(problem("muster-rendezvous-1 x", 3) == begin + "runs another version of muster");
  CHECK(problem("", 3) == begin + "is missing");
  CHECK(problem("muster-rendezvous-2 dead old 3 7\n", 2) == begin + "counts 3 nodes, and this one 2");
  CHECK(problem("muster-rendezvous-2 dead old 2 7\n", 2) == begin + "has left a file and does not answer");
}

TEST_CASE("nodes that count different numbers of nodes, or run another version, say so at once") {
  const auto begin = std::chrono::steady_clock::now();
  const std::string sentence = "the nodes that join a map do not fit: node ";
  StoredTexts store;
  const auto outcomes = joined(store, {{0, 2}, {1, 3}, {2, 3}}, 600s);
  CHECK((outcomes[0].problem == sentence + "1 counts 3 nodes, and this one 2" ||
         outcomes[0].problem == sentence + "2 counts 3 nodes, and this one 2"));
  for (const std::size_t n : {1, 2})
    CHECK(outcomes[n].problem == sentence + "0 counts 2 nodes, and this one 3");
  const std::jthread other([&](const std::stop_token& stop) {
    for (int beat = 0; !stop.stop_requested(); std::this_thread::sleep_for(50ms))
      store.put("run-node-1", fmt::format("muster-rendezvous-999 0123 - 2 {}\n", ++beat));
  });
  CHECK(joined(store, {{0, 2}}, 600s)[0].problem == sentence + "1 runs another version of muster");
  CHECK(std::chrono::steady_clock::now() - begin < 300s);  // long before the end of the patience
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
