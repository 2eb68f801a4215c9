#include "muster/core/io/detail/network_parts.h"

#include <boost/json/object.hpp>

#include "muster/core/io/detail/layer_json.h"
#include "muster/core/io/json_value.h"
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
  for (const auto& vertex : graph.vertices) {
    JsonWriter writer;
    writeLayer(vertex.layer, writer);
    writer.put("inputs", std::span<const std::string>(vertex.inputs));
    all.parts.emplace_back("vertex " + vertex.name, writer.line());
  }
  for (const auto& output : graph.outputs) {
    JsonWriter writer;
    writer.put("name", std::string_view(output.name));
    writer.put("weight", output.weight);
    all.parts.emplace_back("output", writer.line());
  }
  return all;
}

}  // namespace

NetworkParts partsOf(const Network& network) {
  if (const auto* chain = dynamic_cast<const MultiLayerNetwork*>(&network))
    return partsOf(chain->configuration());
  return partsOf(dynamic_cast<const ComputationGraph&>(network).configuration());
}

std::string firstDifference(const std::pair<std::string, std::string>& there,
                            const std::pair<std::string, std::string>& here) {
  if (there.first != here.first)
    return fmt::format("there is {} there, and {} here", there.first, here.first);
  const auto theirs = parseJson(there.second).as_object(), mine = parseJson(here.second).as_object();
  const auto valueIn = [](const boost::json::object& part, std::string_view field) {
    const auto* const value = part.if_contains(field);
    return value ? printJsonLine(*value) : "left out";
  };
  for (const auto* const part : {&theirs, &mine})
    for (const auto& [field, value] : *part)
      if (const auto was = valueIn(theirs, field), is = valueIn(mine, field); was != is)
        return fmt::format("{} has {} {} there, and {} here", there.first, std::string_view(field), was, is);
  return there.first;
}

}  // namespace muster::detail
