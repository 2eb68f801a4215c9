#include "muster/core/nn/compile/graph_order.h"

#include "muster/core/base/random.h"
#include "muster/core/nn/layers.h"
#include "tests/support/test.h"

namespace muster {
namespace {

std::string vertexName(std::size_t vertex) {
  return fmt::format("v{}", vertex);
}

/// Vertices in a random order. Each reads up to three vertices that are computed earlier; the last one reads
/// all values that no other vertex reads.
ComputationGraphConfiguration randomGraph(std::uint64_t seed) {
  const RandomStream random(seed, "graph");
  std::uint64_t draws = 0;
  const auto below = [&](std::size_t count) {
    return static_cast<std::size_t>(random.below(draws++, static_cast<std::uint64_t>(count)));
  };
  const std::size_t count = 1 + below(30);
  ComputationGraphConfiguration graph{.inputs = {{.name = "x", .shape = {2}}}};
  std::vector<bool> read(count);
  for (std::size_t v = 0; v < count; ++v) {
    std::vector<std::string> reads;
    if (v + 1 == count)
      for (std::size_t u = 0; u < v; ++u)
        if (!read[u]) reads.push_back(vertexName(u));
    for (std::size_t i = below(3) + (v == 0 || reads.empty() ? 1 : 0); i > 0; --i) {
      const std::size_t u = v == 0 ? 0 : below(v + 1);
      if (u < v) read[u] = true;
      reads.push_back(u == v ? "x" : vertexName(u));
    }
    if (v == 0 && count > 1) reads = {"x"};
    graph.add(vertexName(v), Combine{}, reads);
  }
  graph.vertices.front().inputs.emplace_back("x");
  graph.addOutput(graph.vertices.back().name);
  for (std::size_t v = count; v > 1; --v) std::swap(graph.vertices[v - 1], graph.vertices[below(v)]);
  return graph;
}

/// Computes an order by repeated passes that take all vertices whose inputs are available.
std::vector<std::size_t> byPasses(const ComputationGraphConfiguration& graph) {
  std::vector<std::string> there;
  for (const auto& input : graph.inputs) there.push_back(input.name);
  std::vector<std::size_t> order;
  const auto isThere = [&](const std::string& name) { return std::ranges::find(there, name) != there.end(); };
  while (order.size() < graph.vertices.size())
    for (std::size_t v = 0; v < graph.vertices.size(); ++v)
      if (const auto& vertex = graph.vertices[v];
          !isThere(vertex.name) && std::ranges::all_of(vertex.inputs, isThere)) {
        there.push_back(vertex.name);
        order.push_back(v);
      }
  return order;
}

}  // namespace

TEST_CASE("vertices are computed in the order of passes over the configuration") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const auto graph = randomGraph(seed);
    CHECK(detail::orderVertices(graph) == byPasses(graph));
  }
}

TEST_CASE("a chain of 50,000 vertices that are listed from the last to the first is sorted") {
  constexpr std::size_t kVertices = 50'000;
  ComputationGraphConfiguration graph{.inputs = {{.name = "x", .shape = {2}}}};
  for (std::size_t v = 0; v < kVertices; ++v)
    graph.add(vertexName(v), ActivationLayer{}, {v + 1 < kVertices ? vertexName(v + 1) : "x"});
  graph.addOutput(vertexName(0));
  const auto order = detail::orderVertices(graph);
  REQUIRE(order.size() == kVertices);
  for (std::size_t i = 0; i < kVertices; ++i) REQUIRE(order[i] == kVertices - 1 - i);
  graph.vertices.back().inputs = {vertexName(0)};
  graph.add("read", ActivationLayer{}, {"x"});
  graph.addOutput("read");
  const auto text = test::thrown<InvalidArgument>([&] { detail::orderVertices(graph); });
  CHECK(text.starts_with("graph: there is a cycle: v0 reads v1 reads v2 reads "));
}

}  // namespace muster
