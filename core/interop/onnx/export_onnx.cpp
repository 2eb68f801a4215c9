#include "muster/core/interop/onnx/export_onnx.h"

#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <limits>

#include "muster/core/base/error.h"
#include "muster/core/interop/onnx/detail/onnx_graph.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/nn/compile/network_probe.h"

namespace muster {
namespace {

using detail::NetworkPlan;
using detail::OnnxGraph;

constexpr int kOpset = 17, kIrVersion = 8;  // the versions of libonnx 1.12

/// Parameters and statistics by name, on the CPU.
std::map<std::string, Tensor, std::less<>> tensorsOf(Network& network) {
  network.context().synchronize();
  std::map<std::string, Tensor, std::less<>> tensors;
  std::size_t bytes = 0;
  for (const auto& block : network.blocks()) {
    if (block.kind != BlockKind::Parameters && block.kind != BlockKind::Statistics) continue;
    for (const auto& segment : block.segments->segments) {
      const Tensor values = block.segment(segment);
      bytes += values.bytes();
      tensors.emplace(segment.name, copyTo(values, Device::cpu()));
    }
  }
  require(bytes < std::size_t{std::numeric_limits<std::int32_t>::max()},
          "onnx: the weights have {} bytes, and a model file holds less than 2 GB", bytes);
  return tensors;
}

bool isSequence(const detail::NetworkInput& input) {
  return input.shape.rank() == (input.indices ? 1 : 2);
}

Shape withSteps(const Shape& shape, std::int64_t steps) {
  return shape.dropFirst().prepend(steps);
}

/// The shapes of all values for sequences of twice the length. Empty if the length is fixed: a layer refuses
/// the double length or would need other parameters.
std::vector<Shape> shapesAtTwice(const NetworkPlan& plan) {
  if (std::ranges::none_of(plan.inputs, isSequence)) return {};
  std::vector<Shape> shapes;
  for (const auto& input : plan.inputs)
    shapes.push_back(isSequence(input) ? withSteps(input.shape, 2 * input.shape[0]) : input.shape);
  try {
    return detail::shapesFor(plan, std::move(shapes));
  } catch (const InvalidArgument&) {
    return {};
  }
}

/// A value's dimensions, including the batch. @param twice  the result of shapesAtTwice.
std::vector<OnnxGraph::Dimension> dimensionsOf(const NetworkPlan& plan, std::size_t value, std::int64_t steps,
                                               const std::vector<Shape>& twice) {
  std::vector<OnnxGraph::Dimension> dimensions{{.symbol = "N"}};
  const Shape& shape = plan.shapeOf(value);
  for (int i = 0; i < shape.rank(); ++i) {
    OnnxGraph::Dimension dimension{.size = shape[i]};
    if (!twice.empty() && twice[value][i] != shape[i])
      dimension.symbol = shape[i] == steps ? "T" : fmt::format("{}_{}", plan.nameOf(value), i + 1);
    dimensions.push_back(std::move(dimension));
  }
  return dimensions;
}

/// The length of the input sequences; 0 if there are none. Masks need one length (see Batch).
std::int64_t stepsOf(const NetworkPlan& plan) {
  const auto first = std::ranges::find_if(plan.inputs, isSequence);
  return first == plan.inputs.end() ? 0 : first->shape[0];
}

/// Adds all layers to the graph and their outputs to `values`. @return the names of the network's
/// predictions. Only predictions include the activation that belongs to a loss; layers read the logits.
std::vector<std::string> addNodes(const NetworkPlan& plan, OnnxGraph& graph,
                                  std::vector<std::string> values) {
  std::map<std::size_t, std::string> predictions;
  for (const auto& node : plan.nodes) {
    std::vector<std::string> inputs;
    for (const std::size_t value : node.inputs) inputs.push_back(values[value]);
    OnnxLayer layer(graph, node, std::move(inputs));
    try {
      values.push_back(detail::onnxRule(node.module->type())(*node.module, layer));
      if (const auto head = node.module->lossHead(); head && takesLogits(head->loss))
        predictions.emplace(values.size() - 1, layer.activation(head->activation, values.back()));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("onnx: {} ({}): {}", node.name, node.module->type(), error.what()));
    }
  }
  std::vector<std::string> results;
  for (const auto& output : plan.outputs) {
    const auto found = predictions.find(output.value);
    results.push_back(found == predictions.end() ? values[output.value] : found->second);
  }
  return results;
}

/// @throws InvalidArgument with the message of ONNX's checker, which means that a rule is wrong.
void requireValid(onnx::ModelProto& model) {
  try {
    onnx::checker::check_model(model);
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(/*check_type=*/true, /*strict_mode=*/1));
  } catch (const std::exception& error) {
    throw InvalidArgument(fmt::format("onnx: the model does not pass ONNX's checks: {}", error.what()));
  }
}

onnx::ModelProto modelOf(Network& network, const OnnxOptions& options) {
  require(network.initialized(), "onnx: the network is not initialised; call init()");
  const NetworkPlan plan = detail::NetworkProbe::layOut(network);
  const auto twice = shapesAtTwice(plan);
  const std::int64_t steps = stepsOf(plan);
  OnnxGraph graph(tensorsOf(network), options.lengths, steps);
  std::vector<std::string> values;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const auto& input = plan.inputs[i];
    require(!input.open() || isSequence(input), "onnx: {} has pictures of any size, {}; state their size",
            input.name, input.stated.toString());
    graph.addInput(input.name, input.indices ? DType::Int64 : DType::Float32,
                   dimensionsOf(plan, i, steps, twice));
    values.push_back(input.name);
  }
  const auto predictions = addNodes(plan, graph, std::move(values));
  graph.finishLengths();
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    graph.addOutput(plan.outputs[i].name, predictions[i],
                    dimensionsOf(plan, plan.outputs[i].value, steps, twice));

  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.add_opset_import()->set_version(kOpset);
  model.set_producer_name("muster");
  model.set_producer_version(MUSTER_VERSION);
  graph.proto().set_name("muster");
  *model.mutable_graph() = std::move(graph.proto());
  requireValid(model);
  return model;
}

}  // namespace

void exportOnnx(Network& network, const std::filesystem::path& path, const OnnxOptions& options) {
  network.requireNotTrainedElsewhere("onnx: exportOnnx");
  const onnx::ModelProto model = modelOf(network, options);
  std::string bytes;
  require(model.SerializeToString(&bytes), "onnx: the model is too large for a file");
  writeFileAtomically(path, bytes);
}

}  // namespace muster
