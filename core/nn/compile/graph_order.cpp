#include "muster/core/nn/compile/graph_order.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_plan.h"

namespace muster::detail {
namespace {

using Places = std::map<std::string, std::size_t, std::less<>>;  // inputs first, then vertices

void requireName(std::string_view what, const std::string& name) {
  require(!name.empty(), "graph: {} has no name", what);
  requireUsableName(what, name);
}

Places placesOf(const ComputationGraphConfiguration& graph) {
  Places places;
  const auto add = [&](std::string_view what, const std::string& name) {
    requireName(what, name);
    require(places.emplace(name, places.size()).second, "graph: two inputs or vertices are called {}", name);
  };
  for (const auto& input : graph.inputs) add("an input", input.name);
  for (const auto& vertex : graph.vertices) add("a vertex", vertex.name);
  return places;
}

/// [vertex] the indices of its inputs that are vertices.
std::vector<std::vector<std::size_t>> edgesOf(const ComputationGraphConfiguration& graph,
                                              const Places& places) {
  std::vector<std::vector<std::size_t>> edges(graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const auto& vertex = graph.vertices[v];
    require(!vertex.inputs.empty(), "graph: vertex {} reads nothing", vertex.name);
    for (const auto& name : vertex.inputs) {
      const auto found = places.find(name);
      require(found != places.end(), "graph: vertex {} reads {}, which is neither an input nor a vertex",
              vertex.name, name);
      if (found->second >= graph.inputs.size()) edges[v].push_back(found->second - graph.inputs.size());
    }
  }
  return edges;
}

/// Refuses unused inputs: batches would provide them for nothing.
void requireInputsRead(const ComputationGraphConfiguration& graph) {
  std::set<std::string_view> read;
  for (const auto& vertex : graph.vertices) read.insert(vertex.inputs.begin(), vertex.inputs.end());
  for (const auto& input : graph.inputs)
    require(read.contains(input.name), "graph: no vertex reads the input {}", input.name);
}

/// Names a cycle among vertices that could not be ordered: each has another of them as input.
[[noreturn]] void refuseCycle(const ComputationGraphConfiguration& graph,
                              const std::vector<std::vector<std::size_t>>& edges,
                              const std::vector<bool>& ordered) {
  std::size_t at = static_cast<std::size_t>(std::ranges::find(ordered, false) - ordered.begin());
  std::vector<std::size_t> path;
  std::vector<bool> onPath(ordered.size());
  while (!onPath[at]) {
    onPath[at] = true;
    path.push_back(at);
    at = *std::ranges::find_if(edges[at], [&](std::size_t read) { return !ordered[read]; });
  }
  std::vector<std::string> names;
  for (auto it = std::ranges::find(path, at); it != path.end(); ++it)
    names.push_back(graph.vertices[*it].name);
  names.push_back(graph.vertices[at].name);
  throw InvalidArgument(fmt::format("graph: there is a cycle: {}", fmt::join(names, " reads ")));
}

void requireOutputs(const ComputationGraphConfiguration& graph, const Places& places,
                    const std::vector<std::vector<std::size_t>>& edges,
                    const std::vector<std::size_t>& order) {
  require(!graph.outputs.empty(), "graph: it has no outputs");
  std::vector<bool> used(graph.vertices.size());
  for (const auto& output : graph.outputs) {
    const auto found = places.find(output.name);
    require(found != places.end() && found->second >= graph.inputs.size(),
            "graph: the output {} is not a vertex", output.name);
    require(!used[found->second - graph.inputs.size()], "graph: {} is an output twice", output.name);
    require(std::isfinite(output.weight) && output.weight >= 0,
            "graph: the weight of output {} must be finite and not negative, got {}", output.name,
            output.weight);
    used[found->second - graph.inputs.size()] = true;
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    require(used[*it], "graph: vertex {} leads to no output", graph.vertices[*it].name);
    for (const std::size_t read : edges[*it]) used[read] = true;
  }
}

}  // namespace

std::vector<std::size_t> orderVertices(const ComputationGraphConfiguration& graph) {
  require(!graph.inputs.empty(), "graph: it has no inputs");
  const Places places = placesOf(graph);
  const auto edges = edgesOf(graph, places);
  std::vector<std::vector<std::size_t>> readers(edges.size());
  std::vector<std::size_t> unread(edges.size());  // [vertex] its inputs that are not ordered yet
  for (std::size_t v = 0; v < edges.size(); ++v) {
    unread[v] = edges[v].size();
    for (const std::size_t read : edges[v]) readers[read].push_back(v);
  }
  // The order of repeated passes over the configuration, each taking the vertices that can be computed. A
  // vertex is in the pass of its last input, or in the next pass if the configuration has that input later.
  using Place = std::pair<std::size_t, std::size_t>;  // pass, vertex
  std::priority_queue<Place, std::vector<Place>, std::greater<>> ready;
  std::vector<std::size_t> pass(edges.size());
  for (std::size_t v = 0; v < edges.size(); ++v)
    if (unread[v] == 0) ready.emplace(0, v);
  std::vector<std::size_t> order;
  std::vector<bool> ordered(edges.size());
  while (!ready.empty()) {
    const std::size_t v = ready.top().second;
    ready.pop();
    ordered[v] = true;
    order.push_back(v);
    for (const std::size_t reader : readers[v]) {
      pass[reader] = std::max(pass[reader], pass[v] + (reader < v ? 1 : 0));
      if (--unread[reader] == 0) ready.emplace(pass[reader], reader);
    }
  }
  if (order.size() < graph.vertices.size()) refuseCycle(graph, edges, ordered);
  requireInputsRead(graph);
  requireOutputs(graph, places, edges, order);
  return order;
}

}  // namespace muster::detail
