#include "muster/core/nn/detail/network_plan.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/elementwise.h"

namespace muster::detail {

NetworkLayout::NetworkLayout(std::vector<NetworkInput> inputs) : readAsNumbers_(inputs.size()) {
  plan_.inputs = std::move(inputs);
}

std::size_t NetworkLayout::add(std::string name, const Layer& layer, std::vector<std::size_t> inputs) {
  std::shared_ptr<const Module> module(layer.module().clone());
  if (module->wantsFlatInput() && plan_.shapeOf(inputs.front()).rank() > 1)
    inputs.front() = append({.name = name + ".flatten",
                             .module = std::make_shared<ModuleOf<Flatten>>(),
                             .inputs = {inputs.front()}});
  return append({.name = std::move(name),
                 .module = std::move(module),
                 .settings = layer.settings(),
                 .inputs = std::move(inputs)});
}

std::size_t NetworkLayout::append(NetworkNode node) {
  const auto taken = [&](const auto& other) { return other.name == node.name; };
  require(std::ranges::none_of(plan_.nodes, taken), "network: two layers are called {}", node.name);
  for (const std::size_t value : node.inputs) node.inputShapes.push_back(plan_.shapeOf(value));
  requireIndices(node);
  try {
    node.output = node.module->outputShape(node.inputShapes);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        fmt::format("{} ({}) of {}: {}", node.name, node.module->type(), readingOf(node), error.what()));
  }
  plan_.nodes.push_back(std::move(node));
  return plan_.inputs.size() + plan_.nodes.size() - 1;
}

/// What a node reads, for messages: "wide [9, 8, 7] and stem [4, 8, 7]".
std::string NetworkLayout::readingOf(const NetworkNode& node) const {
  std::vector<std::string> reads;
  for (const std::size_t value : node.inputs)
    reads.push_back(fmt::format("{} {}", plan_.nameOf(value), plan_.shapeOf(value).toString()));
  return fmt::format("{}", fmt::join(reads, " and "));
}

/// An input is read as indices or as numbers, and only inputs hold indices.
void NetworkLayout::requireIndices(const NetworkNode& node) {
  for (const std::size_t value : node.inputs) {
    const bool isInput = value < plan_.inputs.size();
    if (!node.module->wantsIndexInput()) {
      require(!isInput || !plan_.inputs[value].indices,
              "network: {} is read as indices by another layer, but as numbers by {}", plan_.nameOf(value),
              node.name);
      if (isInput) readAsNumbers_[value] = node.name;
      continue;
    }
    require(isInput, "network: {} ({}) takes indices, which only an input of the network can give, not {}",
            node.name, node.module->type(), plan_.nameOf(value));
    require(readAsNumbers_[value].empty(), "network: {} is read as numbers by {}, but as indices by {}",
            plan_.nameOf(value), readAsNumbers_[value], node.name);
    plan_.inputs[value].indices = true;
  }
}

void NetworkLayout::addOutput(std::string name, std::size_t value, double weight) {
  std::optional<LossHead> head;
  if (value >= plan_.inputs.size()) head = plan_.nodes[value - plan_.inputs.size()].module->lossHead();
  plan_.outputs.push_back({.name = std::move(name), .value = value, .head = head, .weight = weight});
}

}  // namespace muster::detail
