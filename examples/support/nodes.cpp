#include "examples/support/nodes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "muster/parallel/nodes/launched_processes.h"
#include "muster/parallel/nodes/node_link.h"

namespace example {
namespace {

constexpr int kMostNodes = 1024;
constexpr int kMostSilence = 1'000'000;  // seconds; in milliseconds it still fits an int

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

template <typename T>
T numberOf(const char* name, const std::string& text, T otherwise) {
  if (text.empty()) return otherwise;
  T number{};
  const auto* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  muster::require(problem == std::errc() && rest == end, "{} must be a number, got \"{}\"", name, text);
  return number;
}

template <typename T>
T numberIn(const char* name, T otherwise) {
  return numberOf(name, variable(name), otherwise);
}

/// Variables are checked like the command line's options.
int nodesOf(const char* name, const std::string& text) {
  const int nodes = numberOf(name, text, 1);
  muster::require(nodes >= 1 && nodes <= kMostNodes, "{} must be between 1 and {}, got {}", name, kMostNodes,
                  nodes);
  return nodes;
}

}  // namespace

NodeOptions::NodeOptions()
    : store(variable("MUSTER_STORE")),
      interface(variable("MUSTER_INTERFACE")),
      node(numberIn("MUSTER_NODE", 0)),
      nodes(nodesOf("MUSTER_NODES", variable("MUSTER_NODES"))),
      silence(numberIn("MUSTER_SILENCE", 30.0)) {
  if (const auto text = variable("MUSTER_MIN_NODES"); !text.empty())
    minNodes = nodesOf("MUSTER_MIN_NODES", text);
}

void NodeOptions::describe(CommandLine& line) {
  line.add("store", store, "DIR",
           "train over several processes by Gloo, which find each other in this directory, or at the Redis "
           "server redis://HOST:PORT/NAME (or MUSTER_STORE)");
  line.add("node", node, "I", "with --store: which of them this one is, from 0 (or MUSTER_NODE)", atLeast(0));
  line.add("nodes", nodes, "N", "with --store: how many there are (or MUSTER_NODES)", between(1, kMostNodes));
  line.add("min-nodes", minNodes, "N",
           "with --store, instead of --node and --nodes: processes may join and leave while they train, and "
           "wait where there are fewer than N (or MUSTER_MIN_NODES)",
           between(1, kMostNodes));
  line.add("interface", interface, "NAME",
           "with --store: the network interface to listen on, as in eth0, or lo on one machine (or "
           "MUSTER_INTERFACE)");
  line.add("silence", silence, "SECONDS",
           "with --store: a process that sends nothing for this time counts as lost; use the same value for "
           "all (or MUSTER_SILENCE)",
           positive);
}

void NodeOptions::check(const CommandLine& line) const {
  if (store.empty()) line.refuse({"node", "nodes", "min-nodes", "interface", "silence"}, "needs --store");
  if (minNodes)
    line.refuse({"node", "nodes"},
                "cannot be combined with --min-nodes: elastic processes have no numbers of their own");
}

int NodeOptions::count() const {
  return store.empty() ? nodesOf("the number of launched processes", std::string(muster::launchedProcesses()))
                       : minNodes.value_or(nodes);
}

muster::Nodes NodeOptions::connect() const {
  if (store.empty()) return launchedNodes();
  muster::require(silence > 0 && silence <= kMostSilence, "silence must be above 0 and at most {} s, got {}",
                  kMostSilence, silence);
  const std::chrono::milliseconds lost(std::llround(1000 * silence));
  if (minNodes)
    return elasticNodes({.store = store, .minNodes = *minNodes, .interface = interface, .silence = lost});
  return nodesByGloo({.store = store, .node = node, .nodes = nodes, .interface = interface, .silence = lost});
}

bool onAnyNode(const muster::Nodes& nodes, bool here) {
  const auto link = nodes.elastic() ? nullptr : nodes.link();
  if (!link) return here;
  std::vector<std::byte> all(static_cast<std::size_t>(nodes.nodes()));
  const std::array own{std::byte(here ? 1 : 0)};
  try {
    link->gather(own, all);
  } catch (const muster::NodeFailure&) {  // the next call that needs it says so
    return here;
  }
  return std::ranges::any_of(all, [](std::byte one) { return one != std::byte{0}; });
}

int savingNode(const muster::Nodes& nodes) {
  const auto link = nodes.elastic() ? nullptr : nodes.link();
  return link && link->failed() ? link->firstLeft() : 0;
}

}  // namespace example
