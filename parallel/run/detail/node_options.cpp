#include "muster/parallel/run/detail/node_options.h"

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

namespace muster::detail {
namespace {

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
  require(problem == std::errc() && rest == end, "{} must be a number, got \"{}\"", name, text);
  return number;
}

template <typename T>
T numberIn(const char* name, T otherwise) {
  return numberOf(name, variable(name), otherwise);
}

/// Variables are checked like the command line's options.
int nodesOf(const char* name, const std::string& text) {
  const int nodes = numberOf(name, text, 1);
  require(nodes >= 1 && nodes <= NodeOptions::kMostNodes, "{} must be between 1 and {}, got {}", name,
          NodeOptions::kMostNodes, nodes);
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

int NodeOptions::count() const {
  return store.empty() ? nodesOf("the number of launched processes", std::string(launchedProcesses()))
                       : minNodes.value_or(nodes);
}

Nodes NodeOptions::connect() const {
  if (store.empty()) return launchedNodes();
  require(silence > 0 && silence <= kMostSilence, "silence must be above 0 and at most {} s, got {}",
          kMostSilence, silence);
  const std::chrono::milliseconds lost(std::llround(1000 * silence));
  if (minNodes)
    return elasticNodes({.store = store, .minNodes = *minNodes, .interface = interface, .silence = lost});
  return nodesByGloo({.store = store, .node = node, .nodes = nodes, .interface = interface, .silence = lost});
}

bool onAnyNode(const Nodes& nodes, bool here) {
  const auto link = nodes.elastic() ? nullptr : nodes.link();
  if (!link) return here;
  std::vector<std::byte> all(static_cast<std::size_t>(nodes.nodes()));
  const std::array own{std::byte(here ? 1 : 0)};
  try {
    link->gather(own, all);
  } catch (const NodeFailure&) {  // the next call that needs it says so
    return here;
  }
  return std::ranges::any_of(all, [](std::byte one) { return one != std::byte{0}; });
}

int savingNode(const Nodes& nodes) {
  const auto link = nodes.elastic() ? nullptr : nodes.link();
  return link && link->failed() ? link->firstLeft() : 0;
}

}  // namespace muster::detail
