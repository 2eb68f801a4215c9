#include "muster/core/nn/compile/network_plan.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/utf8.h"
#include "muster/core/nn/layers/normalise.h"
#include "muster/core/nn/layers/reshape.h"

namespace muster::detail {

namespace {

/// @param name  UTF-8.
bool holdsControl(std::string_view name) {
  while (!name.empty()) {
    const Utf8Character read = readUtf8(name);
    if (read.character < 0x20 || (read.character >= 0x7F && read.character <= 0x9F)) return true;
    name.remove_prefix(read.bytes);
  }
  return false;
}

/// An empty tensor needs no memory, so its other sizes may be as large as any number, and loops over them do
/// not end.
void requireElements(const Shape& input) {
  require(input.elements() > 0, "its input {} has no elements", input.toString());
}

}  // namespace

void requireUsableName(std::string_view what, std::string_view name) {
  require(isUtf8(name), "network: the name of {} is not UTF-8, as names in files are", what);
  require(!holdsControl(name),
          "network: the name of {} holds a control character, as a newline; names are written to tables and "
          "files",
          what);
}

std::vector<Shape> shapesFor(const NetworkPlan& plan, std::vector<Shape> inputs) {
  const auto shapesOf = [](const std::vector<ParameterSpec>& specs) {
    std::vector<Shape> shapes;
    for (const auto& spec : specs) shapes.push_back(spec.shape);
    return shapes;
  };
  std::vector<Shape> shapes = std::move(inputs);
  for (const auto& node : plan.nodes) {
    std::vector<Shape> reads;
    for (const std::size_t value : node.inputs) reads.push_back(shapes[value]);
    try {
      shapes.push_back(node.module->outputShape(reads));
      const auto& module = *node.module;
      require(shapesOf(module.parameters(reads)) == shapesOf(module.parameters(node.inputShapes)) &&
                  shapesOf(module.statistics(reads)) == shapesOf(module.statistics(node.inputShapes)),
              "its parameters depend on a size that the input's shape leaves open; state it");
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{} ({}): {}", node.name, node.module->type(), error.what()));
    }
  }
  return shapes;
}

namespace {

/// The first of the dimensions that may be open: height and width of images, the length of sequences.
int firstOpen(const Shape& shape) {
  return shape.rank() == 3 ? 1 : 0;
}

/// With `sizes` where `stated` has 0.
Shape filled(const Shape& stated, const OpenSizes& sizes) {
  std::vector<std::int64_t> all(stated.begin(), stated.end());
  const int first = firstOpen(stated), count = stated.rank() == 3 ? 2 : 1;
  if (stated.rank() >= 1 && stated.rank() <= 3)
    for (int i = 0; i < count; ++i)
      if (auto& size = all[static_cast<std::size_t>(first + i)]; size == 0)
        size = sizes[static_cast<std::size_t>(i)];
  return Shape(all);
}

}  // namespace

OpenSizes openSizesOf(const NetworkInput& input, const Shape& example) {
  OpenSizes sizes{};
  const int first = firstOpen(input.stated), count = input.stated.rank() == 3 ? 2 : 1;
  for (int i = 0; i < count; ++i)
    if (input.stated[first + i] == 0) sizes[static_cast<std::size_t>(i)] = example[first + i];
  return sizes;
}

NetworkPlan withSizes(const NetworkPlan& plan, const OpenSizes& sizes) {
  NetworkPlan resized = plan;
  std::vector<Shape> inputs;
  for (auto& input : resized.inputs) {
    input.shape = filled(input.stated, sizes);
    inputs.push_back(input.shape);
  }
  const std::vector<Shape> shapes = shapesFor(plan, std::move(inputs));
  for (std::size_t i = 0; i < resized.nodes.size(); ++i) {
    auto& node = resized.nodes[i];
    for (std::size_t j = 0; j < node.inputs.size(); ++j) node.inputShapes[j] = shapes[node.inputs[j]];
    node.output = shapes[resized.inputs.size() + i];
  }
  return resized;
}

NetworkLayout::NetworkLayout(std::vector<NetworkInput> inputs) : readAsNumbers_(inputs.size()) {
  plan_.inputs = std::move(inputs);
  for (auto& input : plan_.inputs) {
    input.stated = input.shape;
    input.shape = filled(input.stated, {kExampleSize, kExampleSize});
  }
}

NetworkPlan NetworkLayout::take() {
  if (std::ranges::any_of(plan_.inputs, &NetworkInput::open))
    withSizes(plan_, {2 * kExampleSize, 2 * kExampleSize});
  return std::move(plan_);
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
  require(names_.insert(node.name).second, "network: two layers are called {}", node.name);
  for (const std::size_t value : node.inputs) node.inputShapes.push_back(plan_.shapeOf(value));
  requireIndices(node);
  requireScaledInput(node);
  try {
    for (const Shape& input : node.inputShapes) static_cast<void>(input.elements());  // throws if too many
    node.output = node.module->outputShape(node.inputShapes);
    static_cast<void>(node.output.elements());  // likewise
    for (const Shape& input : node.inputShapes) requireElements(input);
    requireTensors(node);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} ({}) of {}: {}{}", node.name, node.module->type(), readingOf(node),
                                      error.what(), openRemark()));
  }
  plan_.nodes.push_back(std::move(node));
  return plan_.inputs.size() + plan_.nodes.size() - 1;
}

/// Checks that tensor names are unique in a model file, which also has names "updater..." and "counters...".
void NetworkLayout::requireTensors(const NetworkNode& node) {
  const auto add = [&](const ParameterSpec& spec) {
    static_cast<void>(spec.shape.elements());  // throws if there are too many
    requireUsableName("one of its tensors", spec.name);
    const std::string name = node.name + "." + spec.name;
    require(
        !name.starts_with("updater.") && !name.starts_with("counters."),
        "its tensor {} would be called as those of the updater and the counters are in files; name the layer "
        "otherwise",
        name);
    require(tensors_.insert(name).second, "two tensors would be called {}", name);
  };
  for (const auto& spec : node.module->parameters(node.inputShapes)) add(spec);
  for (const auto& spec : node.module->statistics(node.inputShapes)) add(spec);
}

/// A node's inputs for messages: "wide [9, 8, 7] and stem [4, 8, 7]".
std::string NetworkLayout::readingOf(const NetworkNode& node) const {
  std::vector<std::string> reads;
  for (const std::size_t value : node.inputs)
    reads.push_back(fmt::format("{} {}", plan_.nameOf(value), plan_.shapeOf(value).toString()));
  return fmt::format("{}", fmt::join(reads, " and "));
}

/// The end of a message with shapes that have kExampleSize for a size that an input leaves open.
std::string NetworkLayout::openRemark() const {
  const auto input = std::ranges::find_if(plan_.inputs, &NetworkInput::open);
  if (input == plan_.inputs.end()) return {};
  return fmt::format("; the shape of {} is {}, and {} stands for a size that it leaves open", input->name,
                     input->stated.toString(), kExampleSize);
}

/// Only inputs hold indices; an input is read either as indices or as numbers.
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

/// The numbers of a Normalise come from the data set, so it reads nothing else.
void NetworkLayout::requireScaledInput(const NetworkNode& node) {
  if (node.module->type() != Normalise::kType) return;
  require(node.inputs.front() < plan_.inputs.size(),
          "network: {} (normalise) scales an input of the network, but reads {}; make it the first layer",
          node.name, plan_.nameOf(node.inputs.front()));
}

void NetworkLayout::addOutput(std::string name, std::size_t value, double weight) {
  std::optional<LossHead> head;
  if (value >= plan_.inputs.size()) head = plan_.nodes[value - plan_.inputs.size()].module->lossHead();
  if (head) weight *= head->weight;
  plan_.outputs.push_back({.name = std::move(name), .value = value, .head = head, .weight = weight});
}

}  // namespace muster::detail
