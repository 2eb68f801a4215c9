#include "muster/core/nn/multi_layer_network.h"

#include <map>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_plan.h"

namespace muster {

TrainingOptions MultiLayerConfiguration::trainingOptions() const {
  return {.updater = updater,
          .l1 = l1,
          .l2 = l2,
          .weightDecay = weightDecay,
          .clipNorm = clipNorm,
          .clipValue = clipValue,
          .accumulate = accumulate};
}

namespace {

/// "conv2d" gives "conv", so that names are conv1, conv2, dense1, output.
std::string namePrefix(std::string_view type) {
  if (type.ends_with("2d")) type.remove_suffix(2);
  return std::string(type);
}

void validate(const MultiLayerConfiguration& configuration) {
  require(!configuration.layers.empty(), "network: it has no layers");
  for (std::size_t i = 0; i < configuration.layers.size(); ++i) {
    const auto& module = configuration.layers[i].module();
    require(
        module.takesOneInput(),
        "network: layer {} ({}) takes several inputs, which a chain does not have; a ComputationGraph does",
        i, module.type());
    try {
      module.validate();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("layer {}: {}", i, error.what()));
    }
    detail::requireUsableName(fmt::format("layer {}", i), module.name());
    const bool last = i + 1 == configuration.layers.size();
    require(last || !module.lossHead(), "network: an output must be the last layer, got one as layer {}", i);
  }
}

}  // namespace

MultiLayerNetwork::MultiLayerNetwork(MultiLayerConfiguration configuration, Context* context)
    : Network(configuration.trainingOptions(), configuration.seed, context),
      configuration_(std::move(configuration)) {
  validate(configuration_);
  if (!configuration_.inputShape.empty()) layOut();  // shapes that do not fit fail here
}

MultiLayerNetwork::MultiLayerNetwork(MultiLayerConfiguration configuration)
    : MultiLayerNetwork(std::move(configuration), nullptr) {}

MultiLayerNetwork::MultiLayerNetwork(MultiLayerConfiguration configuration, Context& context)
    : MultiLayerNetwork(std::move(configuration), &context) {}

std::vector<detail::NetworkOutline> MultiLayerNetwork::outline() const {
  std::vector<detail::NetworkOutline> rows;
  std::map<std::string, int> counts;
  for (const auto& layer : configuration_.layers) {
    const auto& module = layer.module();
    std::string name(module.name());
    if (name.empty()) {
      const auto prefix = namePrefix(module.type());
      const int number = ++counts[prefix];
      name = module.lossHead() && number == 1 ? prefix : fmt::format("{}{}", prefix, number);
    }
    rows.push_back({.name = std::move(name), .type = std::string(module.type()), .inputs = {}});
  }
  return rows;
}

detail::NetworkPlan MultiLayerNetwork::layOut() const {
  detail::NetworkLayout layout(inputs());
  const auto rows = outline();
  std::size_t value = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    value = layout.add(rows[i].name, configuration_.layers[i], {value});
  layout.addOutput(rows.back().name, value);
  return layout.take();
}

std::vector<detail::NetworkInput> MultiLayerNetwork::inputs() const {
  return {{.name = "features", .shape = configuration_.inputShape}};
}

void MultiLayerNetwork::setInputShapes(std::span<const Shape> shapes) {
  configuration_.inputShape = shapes.front();
}

std::unique_ptr<Network> MultiLayerNetwork::make(Context* context) const {
  return std::unique_ptr<Network>(new MultiLayerNetwork(configuration_, context));
}

std::unique_ptr<MultiLayerNetwork> MultiLayerNetwork::clone() {
  auto copy = cloneNetwork();
  return std::unique_ptr<MultiLayerNetwork>(static_cast<MultiLayerNetwork*>(copy.release()));
}

}  // namespace muster
