#include <fmt/ranges.h>

#include "muster/core/io/detail/layer_json.h"
#include "muster/core/io/detail/network_parts.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"

namespace muster::detail {
namespace {

std::string lineOf(const Layer& layer) {
  JsonWriter writer;
  writeLayer(layer, writer);
  return writer.line();
}

NetworkParts partsOf(const MultiLayerConfiguration& chain) {
  NetworkParts all{.inputs = {{"features", chain.inputShape}}, .parts = {}};
  for (std::size_t i = 0; i < chain.layers.size(); ++i)
    all.parts.emplace_back(fmt::format("layer {}", i), lineOf(chain.layers[i]));
  return all;
}

NetworkParts partsOf(const ComputationGraphConfiguration& graph) {
  NetworkParts all;
  for (const auto& input : graph.inputs) all.inputs.emplace_back(input.name, input.shape);
  for (const auto& vertex : graph.vertices)
    all.parts.emplace_back("vertex " + vertex.name,
                           fmt::format("{} of {}", lineOf(vertex.layer), fmt::join(vertex.inputs, ", ")));
  for (const auto& output : graph.outputs)
    all.parts.emplace_back("output", fmt::format("{} with weight {}", output.name, output.weight));
  return all;
}

}  // namespace

NetworkParts partsOf(const Network& network) {
  if (const auto* chain = dynamic_cast<const MultiLayerNetwork*>(&network))
    return partsOf(chain->configuration());
  return partsOf(dynamic_cast<const ComputationGraph&>(network).configuration());
}

}  // namespace muster::detail
