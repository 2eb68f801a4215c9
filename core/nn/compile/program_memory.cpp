#include "muster/core/nn/compile/program_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "muster/core/device/memory_room.h"
#include "muster/core/nn/compile/memory_plan.h"

namespace muster::detail {
namespace {

std::size_t bytesOf(const ProgramValue& value) {
  return static_cast<std::size_t>(storageElements(value.shape, value.layout)) * sizeOf(value.dtype);
}

Tensor zeroBytes(std::size_t bytes, Device device) {
  static std::mutex mutex;
  std::unique_lock lock(mutex, std::defer_lock);
  if (const auto size = static_cast<double>(bytes); device.isCpu() && size >= kLargeMemory) {
    lock.lock();  // memory that another worker is about to fill must not count as free
    requireMemoryRoom(size, "network: what a step keeps of its batch takes",
                      "smaller batches and fewer workers need less");
  }
  return Tensor::zeros({static_cast<std::int64_t>(bytes)}, DType::UInt8, device);
}

Tensor viewOf(const ProgramValue& value, const Tensor& memory, std::size_t offset) {
  return Tensor::view(static_cast<std::byte*>(memory.raw()) + offset, value.shape, value.dtype,
                      memory.device(), value.layout);
}

/// A value lives from its node to its last reader. A value that the backward pass reads is never freed,
/// because a backward pass may run again.
Tensor placeActivations(ProgramGraph& graph, bool training, Device device) {
  auto& values = graph.values;
  auto& nodes = graph.nodes;
  const int forGood = static_cast<int>(nodes.size()) + 1;
  Lifetimes lifetimes(values.size());
  for (std::size_t v = 0; v < values.size(); ++v) lifetimes.set(v, {.bytes = bytesOf(values[v])});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ProgramNode& node = nodes[i];
    const int now = static_cast<int>(i) + 1;
    const bool aliases = node.program->aliasesInput();
    const BackwardReads reads =
        aliases ? BackwardReads{.input = false, .output = false} : node.program->backwardReads();
    lifetimes.set(node.output, {.bytes = bytesOf(values[node.output]),
                                .begin = now,
                                .end = training && reads.output ? forGood : now});
    for (const auto& input : node.inputs)
      lifetimes.extend(input.value, training && reads.input ? forGood : now);
    if (aliases) lifetimes.join(node.output, node.inputs.front().value);
  }
  for (const std::size_t output : graph.outputs) lifetimes.extend(output, forGood);
  const MemoryPlan plan = lifetimes.plan();
  const Tensor memory = zeroBytes(plan.bytes, device);
  for (std::size_t v = 0; v < values.size(); ++v)
    values[v].value = viewOf(values[v], memory, plan.offsets[v]);
  return memory;
}

/// A node that uses the side stream keeps its output gradient to the end of the backward pass. Nodes use the
/// stream, in backward order, until these gradients take too much memory: large ones fill a device anyway.
/// A first layer does not: it computes no input gradient meanwhile, and on the compute stream its weight
/// gradient overlaps with the next layer's.
void chooseSideStream(ProgramGraph& graph, Context& context) {
  constexpr std::size_t kMostBytes = std::size_t{32} << 20;
  std::size_t kept = 0;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    ProgramNode& node = graph.nodes[i];
    const std::size_t bytes = bytesOf(graph.values[node.output]);
    const bool hasTwoGradients = std::ranges::any_of(
        node.inputs, [&](const ProgramInput& input) { return graph.values[input.value].learned; });
    node.usesSideStream = hasTwoGradients && node.program->readsGradientLate() && kept + bytes <= kMostBytes;
    if (node.usesSideStream) kept += bytes;
  }
  if (kept > 0) context.prepareSideStream();
}

/// A gradient is needed from its first writer (the loss, or the last node that reads the value) to the node
/// that computes the value, or to the end if that node uses the side stream. A node whose program permits it
/// writes its input's gradient over its output's. The caller reads gradients of inputs after the pass.
Tensor placeGradients(ProgramGraph& graph, Device device) {
  auto& values = graph.values;
  auto& nodes = graph.nodes;
  const int count = static_cast<int>(nodes.size());
  const int forGood = count + 1;
  const auto hasGradient = [&](std::size_t v) { return values[v].dtype == DType::Float32; };
  const auto use = [&](std::size_t v, int begin, int end) {
    return MemoryUse{.bytes = hasGradient(v) ? bytesOf(values[v]) : 0, .begin = begin, .end = end};
  };
  Lifetimes lifetimes(values.size());
  const auto begins = [&](std::size_t v, int moment) {
    lifetimes.set(v, use(v, moment, v < graph.inputs ? forGood : moment));
  };
  for (std::size_t v = 0; v < values.size(); ++v)
    lifetimes.set(v, use(v, forGood, v < graph.inputs ? forGood : 0));
  for (const std::size_t output : graph.outputs) begins(output, 0);
  const auto inPlace = [&](const ProgramNode& node, const ProgramInput& input) {
    return input.writes && node.inputs.size() == 1 && node.program->gradientInPlace() &&
           !node.usesSideStream && values[input.value].layout == values[node.output].layout;
  };
  std::vector<std::pair<ProgramInput*, std::size_t>> scratches;  // input, index in `lifetimes`
  for (std::size_t i = nodes.size(); i-- > 0;) {
    ProgramNode& node = nodes[i];
    const int now = count - static_cast<int>(i);
    lifetimes.extend(node.output, node.usesSideStream ? count : now);
    for (auto& input : node.inputs) {
      if (!hasGradient(input.value)) continue;
      if (input.writes) begins(input.value, now);
      if (input.handsOver || inPlace(node, input)) lifetimes.join(input.value, node.output);
      if (!input.writes && !node.passesGradient())
        scratches.emplace_back(&input, lifetimes.add(use(input.value, now, now)));
    }
  }
  const MemoryPlan plan = lifetimes.plan();
  const Tensor memory = zeroBytes(plan.bytes, device);
  for (std::size_t v = 0; v < values.size(); ++v)
    if (hasGradient(v)) values[v].gradient = viewOf(values[v], memory, plan.offsets[v]);
  for (const auto& [input, place] : scratches)
    input->scratch = viewOf(values[input->value], memory, plan.offsets[place]);
  return memory;
}

void bindNodes(ProgramGraph& graph, bool training) {
  for (auto& node : graph.nodes) {
    for (auto& input : node.inputs) {
      const ProgramValue& value = graph.values[input.value];
      node.x.push_back(value.value);
      if (training && node.passesGradient())  // the input's gradient is the output's
        input.scratch = viewOf(value, graph.values[node.output].gradient, 0);
    }
    if (!node.passesGradient()) node.gradX.resize(node.inputs.size());
  }
}

}  // namespace

ProgramMemory placeValues(ProgramGraph& graph, bool training, Context& context) {
  ProgramMemory memory{.activations = placeActivations(graph, training, context.device()), .gradients = {}};
  if (training) {
    chooseSideStream(graph, context);
    memory.gradients = placeGradients(graph, context.device());
  }
  bindNodes(graph, training);
  return memory;
}

}  // namespace muster::detail
