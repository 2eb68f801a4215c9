#include "muster/core/nn/compile/network_program.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/ops/elementwise.h"
#include "muster/core/ops/reorder.h"

namespace muster::detail {
namespace {

/// Adds the node's name to device failures that `run` throws, also while a step is recorded.
template <typename Run>
void named(const ProgramNode& node, const Run& run) {
  const auto text = [&](const Error& error) { return fmt::format("layer {}: {}", node.name, error.what()); };
  try {
    run();
  } catch (const DeviceFailure& error) {
    throw DeviceFailure(text(error));
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(text(error));
  }
}

}  // namespace

bool NetworkProgram::recordable() const {
  return std::ranges::all_of(graph_.nodes, [](const ProgramNode& node) {
    return node.program->aliasesInput() || node.program->recordable();
  });
}

void NetworkProgram::forward(std::span<const Tensor* const> features, const StepInfo& info) {
  for (std::size_t i = 0; i < graph_.inputs; ++i) {
    auto& input = graph_.values[i];
    input.dtype == DType::Int64 ? loadIndices(*features[i], input.value, context_)
                                : loadFeatures(*features[i], input.value, context_);
  }
  StepInfo evaluation = info;
  evaluation.training = false;
  for (auto& node : graph_.nodes)
    if (!node.program->aliasesInput())
      named(node, [&] {
        node.program->forwardAll(node.x, graph_.values[node.output].value,
                                 node.asInEvaluation ? evaluation : info);
      });
}

void NetworkProgram::backward(const StepInfo& info, bool withInputGradient) {
  StepInfo evaluation = info;
  evaluation.training = false;
  SideStreamScope sideStream(context_);
  for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
    ProgramNode& node = graph_.nodes[i];
    if (!node.runsBackward && !withInputGradient) continue;
    for (std::size_t s = 0; s < node.gradX.size(); ++s) {
      const ProgramInput& input = node.inputs[s];
      const ProgramValue& value = graph_.values[input.value];
      const bool wanted = value.learned || withInputGradient;
      node.gradX[s] = !wanted ? Tensor() : input.writes ? value.gradient : input.scratch;
    }
    ProgramValue& output = graph_.values[node.output];
    sideStream.permit(node.usesSideStream);
    if (!node.program->aliasesInput())
      named(node, [&] {
        node.program->backwardAll(node.x, output.value, output.gradient, node.gradX,
                                  node.asInEvaluation ? evaluation : info);
      });
    addShares(node, withInputGradient);
  }
  sideStream.join();
}

/// Moves or adds a node's input gradients to the values' gradients, unless they are there already.
void NetworkProgram::addShares(ProgramNode& node, bool withInputGradient) {
  const bool passes = node.passesGradient();
  for (auto& input : node.inputs) {
    ProgramValue& value = graph_.values[input.value];
    if (input.handsOver || !value.gradient.defined() || !(value.learned || withInputGradient)) continue;
    if (!input.writes)
      addTo(input.scratch, value.gradient, context_);
    else if (passes)
      copy(input.scratch, value.gradient, context_);
  }
}

}  // namespace muster::detail
