#include "muster/core/nn/detail/network_program.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/nn/detail/memory_plan.h"
#include "muster/core/nn/detail/on_device.h"
#include "muster/core/ops/elementwise.h"
#include "muster/core/ops/reorder.h"

namespace muster::detail {
namespace {

/// Brings an activation from one layout to another between two modules that disagree.
class ReorderProgram final : public ModuleProgram {
 public:
  ReorderProgram(Layout from, Layout to, Context& context) : from_(from), to_(to), context_(context) {}
  Layout inputLayout() const override { return from_; }
  Layout outputLayout() const override { return to_; }
  BackwardReads backwardReads() const override { return {.input = false, .output = false}; }
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override { reorder(x, y, context_); }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (gradX.defined()) reorder(gradY, gradX, context_);
  }

 private:
  Layout from_, to_;
  Context& context_;
};

/// Pieces of memory to be planned, some of which are one: each value has a root that stands for it.
class Lives {
 public:
  explicit Lives(std::size_t count) : roots_(count), uses_(count) {
    for (std::size_t i = 0; i < count; ++i) roots_[i] = i;
  }
  std::size_t add(const MemoryUse& use) {
    roots_.push_back(roots_.size());
    uses_.push_back(use);
    return roots_.size() - 1;
  }
  void set(std::size_t i, const MemoryUse& use) { uses_[i] = use; }
  void extend(std::size_t i, int moment) { uses_[i].end = std::max(uses_[i].end, moment); }
  /// `i` lies in the memory of `other`.
  void join(std::size_t i, std::size_t other) { roots_[rootOf(i)] = rootOf(other); }
  std::size_t rootOf(std::size_t i) const {
    while (roots_[i] != i) i = roots_[i];
    return i;
  }

  /// The place of each, and how many bytes all take.
  MemoryPlan plan() const {
    std::vector<MemoryUse> joined = uses_;
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      auto& root = joined[rootOf(i)];
      root.bytes = std::max(root.bytes, uses_[i].bytes);
      root.begin = std::min(root.begin, uses_[i].begin);
      root.end = std::max(root.end, uses_[i].end);
      if (rootOf(i) != i) joined[i].bytes = 0;
    }
    MemoryPlan plan = planMemory(joined);
    for (std::size_t i = 0; i < uses_.size(); ++i) plan.offsets[i] = plan.offsets[rootOf(i)];
    return plan;
  }

 private:
  std::vector<std::size_t> roots_;
  std::vector<MemoryUse> uses_;
};

bool handsOn(const VertexProgram& program) {
  return program.aliasesInput() || program.passesGradient();
}

Tensor zeroBytes(std::size_t bytes, Device device) {
  return Tensor::zeros({static_cast<std::int64_t>(bytes)}, DType::UInt8, device);
}

}  // namespace

NetworkProgram::NetworkProgram(const NetworkPlan& plan, std::int64_t batch, bool training, Context& context)
    : context_(context), inputs_(plan.inputs.size()), inputRead_(plan.inputs.size()) {
  std::vector<std::size_t> values;  // of the plan's, here
  for (const auto& input : plan.inputs) {
    values.push_back(values_.size());
    values_.push_back(
        {.shape = input.shape.prepend(batch), .dtype = input.indices ? DType::Int64 : DType::Float32});
  }
  for (const auto& node : plan.nodes) {
    addNode(node, values, training);
    values.push_back(values_.size() - 1);
  }
  for (const auto& output : plan.outputs)
    outputs_.push_back(inLayout(values[output.value], Layout::RowMajor));
  orderContributions();
  planValues(training);
  if (training) planGradients();
  bindNodes(training);
}

void NetworkProgram::addNode(const NetworkNode& node, std::span<const std::size_t> values, bool training) {
  ModuleBinding binding{.name = node.name,
                        .training = training,
                        .parameters = node.parameters,
                        .gradients = training ? node.gradients : std::vector<Tensor>{},
                        .statistics = node.statistics};
  for (const std::size_t input : node.inputs) {
    const Value& value = values_[values[input]];
    binding.inputs.push_back({.shape = value.shape, .layout = value.layout});
  }
  Node made{.program = compile(node, binding),
            .runsBackward = !std::ranges::all_of(node.segments, &Segment::frozen),
            .asInEvaluation = node.settings.frozen};
  const Layout wanted = made.program->inputLayout();
  for (const std::size_t input : node.inputs)
    made.inputs.push_back({.value = inLayout(values[input], wanted)});
  append(std::move(made), node.output.prepend(values_.front().shape[0]));
}

namespace {
/// A layer on another GPU multiplies as the network does, where it can.
ContextOptions optionsOn(Device device, const Context& network) {
  const bool bothOnGpus = !device.isCpu() && !network.device().isCpu();
  if (!bothOnGpus || (network.mathMode() != MathMode::Float32 && !propertiesOf(device).tensorFloat32))
    return {};
  return {.mathMode = network.mathMode()};
}
}  // namespace

std::unique_ptr<VertexProgram> NetworkProgram::compile(const NetworkNode& node,
                                                       const ModuleBinding& binding) {
  const auto& device = node.settings.device;
  if (!device || *device == context_.device()) return compileHere(*node.module, binding, context_);
  require(!node.module->wantsIndexInput(), "network: {} reads indices, and can only be where the network is",
          node.name);
  auto& layerContext = layerContexts_[*device];
  if (!layerContext) layerContext = std::make_unique<Context>(*device, optionsOn(*device, context_));
  return compileOnDevice(*node.module, binding, context_, *layerContext);
}

void NetworkProgram::append(Node node, const Shape& output) {
  const auto isLearned = [&](const Slot& slot) { return values_[slot.value].learned; };
  node.runsBackward = node.runsBackward || std::ranges::any_of(node.inputs, isLearned);
  node.output = values_.size();
  values_.push_back({.shape = output, .layout = node.program->outputLayout(), .learned = node.runsBackward});
  nodes_.push_back(std::move(node));
}

/// The value in this layout, reordered where it has another one. An input comes as its first reader wants it.
std::size_t NetworkProgram::inLayout(std::size_t value, Layout layout) {
  if (value < inputs_ && !inputRead_[value]) {
    values_[value].layout = layout;
    inputRead_[value] = true;
  }
  if (values_[value].layout == layout) return value;
  for (const auto& node : nodes_)
    if (dynamic_cast<const ReorderProgram*>(node.program.get()) && node.inputs.front().value == value &&
        node.program->outputLayout() == layout)
      return node.output;
  append({.program = std::make_unique<ReorderProgram>(values_[value].layout, layout, context_),
          .inputs = {{.value = value}}},
         Shape(values_[value].shape));
  return values_.size() - 1;
}

/// Several nodes may read a value: the last of them writes its gradient, as its backward pass comes first,
/// and the others add theirs. Of an output the loss has written it before.
void NetworkProgram::orderContributions() {
  std::vector<bool> written(values_.size());
  for (const std::size_t output : outputs_) written[output] = true;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    auto& inputs = nodes_[i].inputs;
    bool handedOver = false;
    for (auto& slot : inputs) {
      slot.writes = !written[slot.value];
      slot.handsOver = slot.writes && !handedOver && handsOn(*nodes_[i].program) &&
                       std::ranges::count(inputs, slot.value, &Slot::value) == 1;
      handedOver = handedOver || slot.handsOver;
      written[slot.value] = true;
    }
  }
}

Tensor NetworkProgram::viewOf(const Value& value, const Tensor& memory, std::size_t offset) const {
  return Tensor::view(static_cast<std::byte*>(memory.raw()) + offset, value.shape, value.dtype,
                      context_.device(), value.layout);
}

namespace {
std::size_t bytesOf(const Shape& shape, Layout layout, DType dtype) {
  return static_cast<std::size_t>(storageElements(shape, layout)) * sizeOf(dtype);
}
}  // namespace

/// A value lives from the node that makes it to the last that reads it, and where a backward pass reads it
/// for good, since that may be run again.
void NetworkProgram::planValues(bool training) {
  const int forGood = static_cast<int>(nodes_.size()) + 1;
  Lives lives(values_.size());
  for (std::size_t v = 0; v < values_.size(); ++v)
    lives.set(v, {.bytes = bytesOf(values_[v].shape, values_[v].layout, values_[v].dtype)});
  for (const std::size_t output : outputs_) lives.extend(output, forGood);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const int now = static_cast<int>(i) + 1;
    const std::size_t bytes =
        bytesOf(values_[node.output].shape, values_[node.output].layout, values_[node.output].dtype);
    const bool isOutput = std::ranges::find(outputs_, node.output) != outputs_.end();
    const BackwardReads reads = node.program->aliasesInput() ? BackwardReads{.input = false, .output = false}
                                                             : node.program->backwardReads();
    lives.set(node.output,
              {.bytes = bytes, .begin = now, .end = isOutput || (training && reads.output) ? forGood : now});
    for (const auto& slot : node.inputs) lives.extend(slot.value, training && reads.input ? forGood : now);
    if (node.program->aliasesInput()) lives.join(node.output, node.inputs.front().value);
  }
  const MemoryPlan plan = lives.plan();
  activations_ = zeroBytes(plan.bytes, context_.device());
  for (std::size_t v = 0; v < values_.size(); ++v)
    values_[v].value = viewOf(values_[v], activations_, plan.offsets[v]);
}

/// A node on the side stream keeps its output gradient until the backward pass ends. Nodes are taken in
/// backward order while the sum of these gradients is small: layers with large gradients fill a device alone.
void NetworkProgram::chooseSideStream() {
  constexpr std::size_t kMostBytes = std::size_t{32} << 20;
  std::size_t kept = 0;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    const Value& output = values_[node.output];
    const std::size_t bytes = bytesOf(output.shape, output.layout, output.dtype);
    node.usesSideStream = node.program->readsGradientLate() && kept + bytes <= kMostBytes;
    if (node.usesSideStream) kept += bytes;
  }
  if (kept > 0) context_.prepareSideStream();
}

/// A gradient lives from its first writer (the loss, or the last node that reads the value) to the node that
/// computes the value, or to the end if that node uses the side stream. Gradients of inputs stay for the
/// caller.
void NetworkProgram::planGradients() {
  chooseSideStream();
  const int count = static_cast<int>(nodes_.size());
  const int forGood = count + 1;
  Lives lives(values_.size());
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const bool number = values_[v].dtype == DType::Float32;
    lives.set(v, {.bytes = number ? bytesOf(values_[v].shape, values_[v].layout, DType::Float32) : 0,
                  .begin = forGood,
                  .end = v < inputs_ ? forGood : 0});
  }
  const auto begins = [&](std::size_t value, int moment) {
    lives.set(value, {.bytes = bytesOf(values_[value].shape, values_[value].layout, DType::Float32),
                      .begin = moment,
                      .end = value < inputs_ ? forGood : moment});
  };
  for (const std::size_t output : outputs_) begins(output, 0);
  std::vector<std::pair<Slot*, std::size_t>> scratches;  // and its place in `lives`
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    const int now = count - static_cast<int>(i);
    lives.extend(node.output, node.usesSideStream ? count : now);
    for (auto& slot : node.inputs) {
      if (values_[slot.value].dtype != DType::Float32) continue;
      if (slot.writes) begins(slot.value, now);
      if (slot.handsOver) lives.join(slot.value, node.output);
      if (!slot.writes && !handsOn(*node.program))
        scratches.emplace_back(&slot, lives.add({.bytes = bytesOf(values_[slot.value].shape,
                                                                  values_[slot.value].layout, DType::Float32),
                                                 .begin = now,
                                                 .end = now}));
    }
  }
  const MemoryPlan plan = lives.plan();
  gradients_ = zeroBytes(plan.bytes, context_.device());
  for (std::size_t v = 0; v < values_.size(); ++v)
    if (values_[v].dtype == DType::Float32)
      values_[v].gradient = viewOf(values_[v], gradients_, plan.offsets[v]);
  for (const auto& [slot, place] : scratches)
    slot->scratch = viewOf(values_[slot->value], gradients_, plan.offsets[place]);
}

void NetworkProgram::bindNodes(bool training) {
  for (auto& node : nodes_) {
    for (auto& slot : node.inputs) {
      node.x.push_back(values_[slot.value].value);
      if (training && handsOn(*node.program))  // what is handed on lies in the output's gradient
        slot.scratch = viewOf(values_[slot.value], values_[node.output].gradient, 0);
    }
    if (!handsOn(*node.program)) node.gradX.resize(node.inputs.size());
  }
}

bool NetworkProgram::recordable() const {
  return std::ranges::all_of(
      nodes_, [](const Node& node) { return node.program->aliasesInput() || node.program->recordable(); });
}

void NetworkProgram::forward(std::span<const Tensor* const> features, const StepInfo& info) {
  for (std::size_t i = 0; i < inputs_; ++i) {
    if (values_[i].dtype == DType::Int64)
      loadIndices(*features[i], values_[i].value, context_);
    else
      loadFeatures(*features[i], values_[i].value, context_);
  }
  StepInfo evaluation = info;
  evaluation.training = false;
  for (auto& node : nodes_)
    if (!node.program->aliasesInput())
      node.program->forwardAll(node.x, values_[node.output].value, node.asInEvaluation ? evaluation : info);
}

void NetworkProgram::backward(const StepInfo& info, bool withInputGradient) {
  StepInfo evaluation = info;
  evaluation.training = false;
  SideStreamScope sideStream(context_);
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    if (!node.runsBackward && !withInputGradient) continue;
    for (std::size_t s = 0; s < node.gradX.size(); ++s) {
      const Slot& slot = node.inputs[s];
      const bool wanted = values_[slot.value].learned || withInputGradient;
      node.gradX[s] = !wanted ? Tensor() : slot.writes ? values_[slot.value].gradient : slot.scratch;
    }
    Value& output = values_[node.output];
    sideStream.permit(node.usesSideStream);
    if (!node.program->aliasesInput())
      node.program->backwardAll(node.x, output.value, output.gradient, node.gradX,
                                node.asInEvaluation ? evaluation : info);
    addShares(node, withInputGradient);
  }
  sideStream.join();
}

/// Brings a node's gradients by its inputs where they belong, as far as they are not there yet.
void NetworkProgram::addShares(Node& node, bool withInputGradient) {
  const bool passes = handsOn(*node.program);
  for (auto& slot : node.inputs) {
    Value& value = values_[slot.value];
    if (slot.handsOver || !value.gradient.defined() || !(value.learned || withInputGradient)) continue;
    if (!slot.writes)
      addTo(slot.scratch, value.gradient, context_);
    else if (passes)
      copy(slot.scratch, value.gradient, context_);
  }
}

}  // namespace muster::detail
