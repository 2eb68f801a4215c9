#include "muster/core/nn/described_network.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_plan.h"

namespace muster::detail {
namespace {

struct Row {
  std::string name, type, inputs, shape, parameters;
};

std::string print(const std::vector<Row>& rows, const Row& total) {
  const Row head{"layer", "type", "inputs", "output shape", "parameters"};
  std::size_t name = 14, type = 14, inputs = 0;
  for (const auto& row : rows) {
    name = std::max(name, row.name.size());
    type = std::max(type, row.type.size());
    inputs = std::max(inputs, row.inputs.size());
  }
  if (inputs > 0) inputs = std::max(inputs, head.inputs.size());
  const auto line = [&](const Row& row) {
    const std::string middle = inputs > 0 ? fmt::format(" {:<{}}", row.inputs, inputs) : std::string();
    return fmt::format("{:<{}} {:<{}}{} {:<18} {:>12}\n", row.name, name, row.type, type, middle, row.shape,
                       row.parameters);
  };
  std::string text = line(head);
  const std::string rule = std::string(text.size() - 1, '-') + "\n";
  text += rule;
  for (const auto& row : rows) text += line(row);
  return text + rule + line(total);
}

/// A node's inputs, unless it only reads the node before.
std::string inputsOf(const NetworkPlan& plan, std::size_t node) {
  const auto& inputs = plan.nodes[node].inputs;
  if (inputs.size() == 1 && inputs.front() + 1 == plan.inputs.size() + node) return {};
  std::vector<std::string> names;
  for (const std::size_t value : inputs) names.push_back(plan.nameOf(value));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::vector<std::pair<std::string, Shape>> DescribedNetwork::outputShapes() const {
  for (const auto& input : inputs())
    require(!input.shape.empty(), "network: the shape of {} is still open", input.name);
  const NetworkPlan plan = layOut();
  std::vector<std::pair<std::string, Shape>> shapes;
  for (const auto& node : plan.nodes) shapes.emplace_back(node.name, node.output);
  return shapes;
}

std::vector<Shape> DescribedNetwork::inputShapes() const {
  std::vector<Shape> shapes;
  for (const auto& input : inputs()) shapes.push_back(input.shape);
  return shapes;
}

void DescribedNetwork::requireInputShapes() const {
  for (const auto& input : inputs())
    require(!input.shape.empty(),
            "network: init() needs an inputShape for {}; without it the first batch decides", input.name);
}

std::string DescribedNetwork::summary() const {
  std::vector<Row> rows;
  std::vector<std::string> open;
  for (const auto& input : inputs())
    if (input.shape.empty()) open.push_back(input.name);
  if (!open.empty()) {
    for (const auto& row : outline()) rows.push_back({row.name, row.type, row.inputs, "?", "?"});
    return print(rows, {"total", "", "", "", "?"}) +
           fmt::format("the first batch gives the shape of {}\n", fmt::join(open, ", "));
  }
  const NetworkPlan plan = layOut();
  std::int64_t total = 0, frozen = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const auto& node = plan.nodes[i];
    std::int64_t count = 0;
    for (const auto& spec : node.module->parameters(node.inputShapes)) {
      count += spec.shape.elements();
      if (spec.frozen || node.settings.frozen) frozen += spec.shape.elements();
    }
    total += count;
    rows.push_back({node.name, std::string(node.module->type()), inputsOf(plan, i), node.output.toString(),
                    std::to_string(count)});
  }
  std::string text = print(rows, {"total", "", "", "", std::to_string(total)});
  if (std::ranges::any_of(plan.inputs, &NetworkInput::open))
    text += fmt::format("shapes for a size of {} where the input's shape leaves it open\n", kExampleSize);
  if (frozen > 0) text += fmt::format("of these frozen: {}\n", frozen);
  return text;
}

}  // namespace muster::detail
