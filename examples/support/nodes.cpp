#include "examples/support/nodes.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "muster/parallel/exchange/launched_processes.h"

namespace example {
namespace {

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

template <typename T>
T numberOf(std::string_view text, T otherwise) {
  T number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

NodeOptions::NodeOptions()
    : store(variable("MUSTER_STORE")),
      interface(variable("MUSTER_INTERFACE")),
      node(numberOf(variable("MUSTER_NODE"), 0)),
      nodes(numberOf(variable("MUSTER_NODES"), 1)),
      silence(numberOf(variable("MUSTER_SILENCE"), 30.0)) {
  if (const auto least = variable("MUSTER_MIN_NODES"); !least.empty()) minNodes = numberOf(least, 1);
}

void NodeOptions::describe(CommandLine& line) {
  line.add("store", store, "DIR",
           "train over several processes by Gloo, which find each other in this directory, or at the Redis "
           "server redis://HOST:PORT/NAME (or MUSTER_STORE)");
  line.add("node", node, "I", "with --store: which of them this one is, from 0 (or MUSTER_NODE)", atLeast(0));
  line.add("nodes", nodes, "N", "with --store: how many there are (or MUSTER_NODES)", between(1, 1024));
  line.add("min-nodes", minNodes, "N",
           "with --store, instead of --node and --nodes: processes may join and leave while they train, and "
           "wait where there are fewer than N (or MUSTER_MIN_NODES)",
           between(1, 1024));
  line.add("interface", interface, "NAME",
           "with --store: the network interface to listen on, as in eth0, or lo on one machine (or "
           "MUSTER_INTERFACE)");
  line.add("silence", silence, "SECONDS",
           "with --store: a process of which nothing is heard for so long is lost; the same for all (or "
           "MUSTER_SILENCE)",
           positive);
}

void NodeOptions::check(const CommandLine& line) const {
  if (store.empty()) line.refuse({"node", "nodes", "min-nodes", "interface", "silence"}, "needs --store");
  if (minNodes)
    line.refuse(
        {"node", "nodes"},
        "cannot be combined with --min-nodes: processes that come and go have no numbers of their own");
}

int NodeOptions::count() const {
  return store.empty() ? numberOf(muster::launchedProcesses(), 1) : minNodes.value_or(nodes);
}

muster::Nodes NodeOptions::connect() const {
  if (store.empty()) return nodesByMpi();
  const std::chrono::milliseconds lost(std::llround(1000 * silence));
  if (minNodes)
    return elasticNodes({.store = store, .minNodes = *minNodes, .interface = interface, .silence = lost});
  return nodesByGloo({.store = store, .node = node, .nodes = nodes, .interface = interface, .silence = lost});
}

}  // namespace example
