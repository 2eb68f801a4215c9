#include "muster/core/nn/computation_graph.h"

#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/graph_order.h"
#include "muster/core/nn/compile/network_plan.h"

namespace muster {

std::string ComputationGraphConfiguration::add(std::string name, Layer layer,
                                               std::vector<std::string> reads) {
  vertices.push_back({.name = name, .layer = std::move(layer), .inputs = std::move(reads)});
  return name;
}

void ComputationGraphConfiguration::addOutput(std::string name, double weight) {
  outputs.push_back({.name = std::move(name), .weight = weight});
}

TrainingOptions ComputationGraphConfiguration::trainingOptions() const {
  return {.updater = updater,
          .l1 = l1,
          .l2 = l2,
          .weightDecay = weightDecay,
          .clipNorm = clipNorm,
          .clipValue = clipValue,
          .accumulate = accumulate};
}

namespace {

void validate(const ComputationGraphConfiguration& configuration) {
  std::set<std::string_view> outputs;
  for (const auto& output : configuration.outputs) outputs.insert(output.name);
  for (const auto& vertex : configuration.vertices) {
    const auto& module = vertex.layer.module();
    try {
      module.validate();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("vertex {}: {}", vertex.name, error.what()));
    }
    require(!module.takesOneInput() || vertex.inputs.size() == 1,
            "graph: vertex {} ({}) takes one input, got {}; a Merge or Combine makes one of several",
            vertex.name, module.type(), vertex.inputs.size());
    require(module.name().empty() || module.name() == vertex.name,
            "graph: vertex {} holds a layer with another name, {}", vertex.name, module.name());
    require(!module.lossHead() || outputs.contains(vertex.name),
            "graph: vertex {} ({}) has a loss, but is not an output of the graph; addOutput() makes it one, "
            "and a Dense has no loss",
            vertex.name, module.type());
  }
}

}  // namespace

ComputationGraph::ComputationGraph(ComputationGraphConfiguration configuration, Context* context)
    : Network(configuration.trainingOptions(), configuration.seed, context),
      configuration_(std::move(configuration)) {
  detail::orderVertices(configuration_);
  validate(configuration_);
  for (const auto& input : configuration_.inputs)
    if (input.shape.empty()) return;
  layOut();  // shapes that do not fit fail here
}

ComputationGraph::ComputationGraph(ComputationGraphConfiguration configuration)
    : ComputationGraph(std::move(configuration), nullptr) {}

ComputationGraph::ComputationGraph(ComputationGraphConfiguration configuration, Context& context)
    : ComputationGraph(std::move(configuration), &context) {}

detail::NetworkPlan ComputationGraph::layOut() const {
  detail::NetworkLayout layout(inputs());
  std::map<std::string, std::size_t, std::less<>> values;
  for (const auto& input : configuration_.inputs) values.emplace(input.name, values.size());
  for (const std::size_t v : detail::orderVertices(configuration_)) {
    const auto& vertex = configuration_.vertices[v];
    std::vector<std::size_t> reads;
    for (const auto& name : vertex.inputs) reads.push_back(values.find(name)->second);
    values.emplace(vertex.name, layout.add(vertex.name, vertex.layer, std::move(reads)));
  }
  for (const auto& output : configuration_.outputs)
    layout.addOutput(output.name, values.find(output.name)->second, output.weight);
  return layout.take();
}

std::vector<detail::NetworkOutline> ComputationGraph::outline() const {
  std::vector<detail::NetworkOutline> rows;
  std::string before = configuration_.inputs.back().name;
  for (const std::size_t v : detail::orderVertices(configuration_)) {
    const auto& [name, layer, reads] = configuration_.vertices[v];
    const bool readsBefore = reads.size() == 1 && reads.front() == before;
    rows.push_back({.name = name,
                    .type = std::string(layer.module().type()),
                    .inputs = readsBefore ? std::string() : fmt::format("{}", fmt::join(reads, ", "))});
    before = name;
  }
  return rows;
}

std::vector<detail::NetworkInput> ComputationGraph::inputs() const {
  std::vector<detail::NetworkInput> all;
  for (const auto& input : configuration_.inputs) all.push_back({.name = input.name, .shape = input.shape});
  return all;
}

void ComputationGraph::setInputShapes(std::span<const Shape> shapes) {
  for (std::size_t i = 0; i < shapes.size(); ++i) configuration_.inputs[i].shape = shapes[i];
}

std::unique_ptr<Network> ComputationGraph::make(Context* context) const {
  return std::unique_ptr<Network>(new ComputationGraph(configuration_, context));
}

std::unique_ptr<ComputationGraph> ComputationGraph::clone() {
  auto copy = cloneNetwork();
  return std::unique_ptr<ComputationGraph>(static_cast<ComputationGraph*>(copy.release()));
}

}  // namespace muster
