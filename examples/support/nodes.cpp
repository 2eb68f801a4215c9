#include "examples/support/nodes.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "muster/parallel/exchange/launched_processes.h"

namespace example {
namespace {

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

int numberOf(std::string_view text, int otherwise) {
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

NodeOptions::NodeOptions()
    : store(variable("MUSTER_STORE")),
      interface(variable("MUSTER_INTERFACE")),
      node(numberOf(variable("MUSTER_NODE"), 0)),
      nodes(numberOf(variable("MUSTER_NODES"), 1)) {}

void NodeOptions::describe(CommandLine& line) {
  line.add("store", store, "DIR",
           "train over several processes by Gloo, which find each other in this directory (or MUSTER_STORE)");
  line.add("node", node, "I", "with --store: which of them this one is, from 0 (or MUSTER_NODE)", atLeast(0));
  line.add("nodes", nodes, "N", "with --store: how many there are (or MUSTER_NODES)", between(1, 1024));
  line.add("interface", interface, "NAME",
           "with --store: the network interface to listen on, as in eth0, or lo on one machine (or "
           "MUSTER_INTERFACE)");
}

void NodeOptions::check(const CommandLine& line) const {
  if (store.empty()) line.refuse({"node", "nodes", "interface"}, "needs --store");
}

int NodeOptions::count() const {
  return store.empty() ? numberOf(muster::launchedProcesses(), 1) : nodes;
}

muster::Nodes NodeOptions::connect() const {
  if (store.empty()) return nodesByMpi();
  return nodesByGloo({.store = store, .node = node, .nodes = nodes, .interface = interface});
}

}  // namespace example
