#include "muster/core/nn/compile/program_graph.h"

#include <algorithm>

#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/error.h"
#include "muster/core/nn/compile/on_device.h"
#include "muster/core/nn/layers/conv2d_program.h"
#include "muster/core/nn/layers/pool2d_program.h"
#include "muster/core/ops/reorder.h"

namespace muster::detail {
namespace {

/// Reorders an activation between two modules with different layouts.
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

/// A layer on another GPU uses the network's math mode if that GPU supports it.
ContextOptions optionsOn(Device device, const Context& network) {
  const bool bothOnGpus = !device.isCpu() && !network.device().isCpu();
  if (!bothOnGpus || (network.mathMode() != MathMode::Float32 && !propertiesOf(device).tensorFloat32))
    return {};
  return {.mathMode = network.mathMode()};
}

class Compiler {
 public:
  Compiler(const NetworkPlan& plan, std::int64_t batch, bool training, Context& context)
      : plan_(plan), batch_(batch), training_(training), context_(context), inputRead_(plan.inputs.size()) {}

  ProgramGraph compile() {
    graph_.inputs = plan_.inputs.size();
    for (const auto& input : plan_.inputs) {
      places_.push_back(graph_.values.size());
      graph_.values.push_back(
          {.shape = input.shape.prepend(batch_), .dtype = input.indices ? DType::Int64 : DType::Float32});
    }
    for (const auto& node : plan_.nodes) places_.push_back(addNode(node));
    for (const auto& output : plan_.outputs)
      graph_.outputs.push_back(inLayout(places_[output.value], Layout::RowMajor));
    orderContributions();
    return std::move(graph_);
  }

 private:
  /// @return the node's output value.
  std::size_t addNode(const NetworkNode& node) {
    ModuleBinding binding{.name = node.name,
                          .training = training_,
                          .parameters = node.parameters,
                          .gradients = training_ ? node.gradients : std::vector<Tensor>{},
                          .statistics = node.statistics};
    for (const std::size_t input : node.inputs) {
      const ProgramValue& value = graph_.values[places_[input]];
      binding.inputs.push_back({.shape = value.shape, .layout = value.layout});
    }
    auto program = compileModule(node, binding);
    const auto* const pool = dynamic_cast<const Pool2dProgram*>(program.get());
    if (pool && fusePool(pool->shape(), node)) return places_[node.inputs.front()];
    ProgramNode made{.program = std::move(program),
                     .name = node.name,
                     .runsBackward = !std::ranges::all_of(node.segments, &Segment::frozen),
                     .asInEvaluation = node.settings.frozen};
    if (training_ && !context_.device().isCpu() && !made.program->aliasesInput() &&
        !made.program->recordable())
      warnOnce(
          fmt::format("layer {} cannot be recorded: all steps of its network run call by call", node.name));
    const Layout wanted = made.program->inputLayout();
    for (const std::size_t input : node.inputs)
      made.inputs.push_back({.value = inLayout(places_[input], wanted)});
    append(std::move(made), node.output.prepend(batch_));
    return graph_.values.size() - 1;
  }

  /// Fuses a pooling into the convolution before it, if only the pooling reads the convolution's output,
  /// which then becomes the pooled value. @return whether they were fused.
  bool fusePool(const Pool2dShape& shape, const NetworkNode& pool) {
    const std::size_t input = pool.inputs.front();
    std::int64_t readers = std::ranges::count(plan_.outputs, input, &NetworkOutput::value);
    for (const auto& node : plan_.nodes) readers += std::ranges::count(node.inputs, input);
    const auto before = std::ranges::find(graph_.nodes, places_[input], &ProgramNode::output);
    if (readers > 1 || before == graph_.nodes.end()) return false;
    auto* const convolution = dynamic_cast<Conv2dProgram*>(before->program.get());
    if (!convolution || !convolution->fusePool(shape)) return false;
    graph_.values[places_[input]].shape = pool.output.prepend(batch_);
    return true;
  }

  std::unique_ptr<VertexProgram> compileModule(const NetworkNode& node, const ModuleBinding& binding) {
    const auto& device = node.settings.device;
    if (!device || *device == context_.device()) return compileHere(*node.module, binding, context_);
    require(!node.module->wantsIndexInput(),
            "network: {} reads indices, so it must be on the network's own device", node.name);
    auto& layerContext = graph_.layerContexts[*device];
    if (!layerContext) layerContext = std::make_unique<Context>(*device, optionsOn(*device, context_));
    return compileOnDevice(*node.module, binding, context_, *layerContext);
  }

  void append(ProgramNode node, const Shape& output) {
    const auto isLearned = [&](const ProgramInput& input) { return graph_.values[input.value].learned; };
    node.runsBackward = node.runsBackward || std::ranges::any_of(node.inputs, isLearned);
    node.output = graph_.values.size();
    graph_.values.push_back(
        {.shape = output, .layout = node.program->outputLayout(), .learned = node.runsBackward});
    graph_.nodes.push_back(std::move(node));
  }

  /// The value in this layout, with a reorder if necessary. An input takes the layout of its first reader.
  std::size_t inLayout(std::size_t value, Layout layout) {
    if (value < graph_.inputs && !inputRead_[value]) {
      graph_.values[value].layout = layout;
      inputRead_[value] = true;
    }
    const Layout from = graph_.values[value].layout;
    if (from == layout) return value;
    for (const auto& node : graph_.nodes)
      if (dynamic_cast<const ReorderProgram*>(node.program.get()) && node.inputs.front().value == value &&
          node.program->outputLayout() == layout)
        return node.output;
    append(
        {.program = std::make_unique<ReorderProgram>(from, layout, context_), .inputs = {{.value = value}}},
        Shape(graph_.values[value].shape));
    return graph_.values.size() - 1;
  }

  /// Several nodes may read a value. The last of them, which is first in the backward pass, writes the
  /// value's gradient, the others add to it. For an output the loss writes the gradient first.
  void orderContributions() {
    std::vector<bool> written(graph_.values.size());
    for (const std::size_t output : graph_.outputs) written[output] = true;
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      auto& node = graph_.nodes[i];
      bool handedOver = false;
      for (auto& input : node.inputs) {
        input.writes = !written[input.value];
        input.handsOver = input.writes && !handedOver && node.passesGradient() &&
                          std::ranges::count(node.inputs, input.value, &ProgramInput::value) == 1;
        handedOver = handedOver || input.handsOver;
        written[input.value] = true;
      }
    }
  }

  const NetworkPlan& plan_;
  std::int64_t batch_;
  bool training_;
  Context& context_;
  std::vector<bool> inputRead_;  // [input] its layout is fixed
  ProgramGraph graph_;
  std::vector<std::size_t> places_ = {};  // [value of the plan] its index in the graph
};

}  // namespace

ProgramGraph compileGraph(const NetworkPlan& plan, std::int64_t batch, bool training, Context& context) {
  return Compiler(plan, batch, training, context).compile();
}

}  // namespace muster::detail
