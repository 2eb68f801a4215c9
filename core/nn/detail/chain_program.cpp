#include "muster/core/nn/detail/chain_program.h"

#include <algorithm>
#include <cstring>

#include "muster/core/ops/reorder.h"

namespace muster::detail {
namespace {

/// Brings an activation from one layout to another between two modules that disagree.
class ReorderProgram final : public ModuleProgram {
 public:
  ReorderProgram(Layout from, Layout to, Context& context) : from_(from), to_(to), context_(context) {}
  Layout inputLayout() const override { return from_; }
  Layout outputLayout() const override { return to_; }
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override { reorder(x, y, context_); }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (gradX.defined()) reorder(gradY, gradX, context_);
  }

 private:
  Layout from_, to_;
  Context& context_;
};

std::size_t alignedBytes(const Shape& shape, Layout layout) {
  const auto bytes = static_cast<std::size_t>(storageElements(shape, layout)) * sizeof(float);
  return (bytes + 63) / 64 * 64;
}

}  // namespace

ChainProgram::ChainProgram(std::span<const ChainLayer> layers, std::int64_t batch, bool training,
                           Context& context)
    : context_(context) {
  edges_.push_back({.shape = layers.front().input.prepend(batch)});
  for (const auto& layer : layers) {
    ModuleBinding binding{.name = layer.name,
                          .input = edges_.back().shape,
                          .offered = edges_.back().layout,
                          .training = training,
                          .parameters = layer.parameters,
                          .gradients = training ? layer.gradients : std::vector<Tensor>{},
                          .statistics = layer.statistics};
    auto program = layer.module->compile(binding, context);
    addNode(std::move(program), layer.output.prepend(batch), layer.segments);
  }
  if (edges_.back().layout != Layout::RowMajor)
    addNode(std::make_unique<ReorderProgram>(edges_.back().layout, Layout::RowMajor, context),
            edges_.back().shape, {});
  planMemory(training);
}

void ChainProgram::addNode(std::unique_ptr<ModuleProgram> program, const Shape& output,
                           std::span<const Segment> segments) {
  const Layout wanted = program->inputLayout();
  if (nodes_.empty()) {
    edges_.back().layout = wanted;  // the features are loaded in the first layer's layout
  } else if (const Edge before = edges_.back(); before.layout != wanted) {
    edges_.push_back({.shape = before.shape, .layout = wanted});
    nodes_.push_back(
        {.program = std::make_unique<ReorderProgram>(before.layout, wanted, context_), .segments = {}});
  }
  const bool alias = program->aliasesInput();
  edges_.push_back({.shape = output, .layout = program->outputLayout(), .alias = alias});
  nodes_.push_back({.program = std::move(program), .segments = segments});
  bool learned = false;  // by a node before: only those need gradients
  for (auto& node : nodes_) {
    node.needsInputGradient = learned;
    learned = learned || !node.segments.empty();
    node.runsBackward = learned;
  }
}

void ChainProgram::planMemory(bool training) {
  // Activations: one place each while training, else two that alternate. Gradients: two that alternate.
  std::vector<std::size_t> valueOffset(edges_.size()), gradientOffset(edges_.size());
  std::size_t total = 0, largest = 0;
  for (const auto& edge : edges_) largest = std::max(largest, alignedBytes(edge.shape, edge.layout));
  std::size_t side = 0;
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    if (edges_[i].alias) {
      valueOffset[i] = valueOffset[i - 1];
      gradientOffset[i] = gradientOffset[i - 1];
      continue;
    }
    valueOffset[i] = training ? total : side * largest;
    gradientOffset[i] = side * largest;
    total += alignedBytes(edges_[i].shape, edges_[i].layout);
    side = 1 - side;
  }
  activations_ = Buffer(training ? total : 2 * largest, context_.device());
  std::memset(activations_.data(), 0, activations_.bytes());
  if (training) {
    gradients_ = Buffer(2 * largest, context_.device());
    std::memset(gradients_.data(), 0, gradients_.bytes());
  }
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    auto& edge = edges_[i];
    const auto viewAt = [&](std::byte* place) {
      return Tensor::view(place, edge.shape, DType::Float32, context_.device(), edge.layout);
    };
    edge.value = viewAt(activations_.data() + valueOffset[i]);
    if (training) edge.gradient = viewAt(gradients_.data() + gradientOffset[i]);
  }
}

Tensor& ChainProgram::forward(const Tensor& features, const StepInfo& info) {
  loadFeatures(features, edges_.front().value, context_);
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i].program->aliasesInput())
      nodes_[i].program->forward(edges_[i].value, edges_[i + 1].value, info);
  return edges_.back().value;
}

void ChainProgram::backward(const StepInfo& info, const GradientReady& onReady, bool withInputGradient) {
  for (std::size_t i = nodes_.size(); i-- > 0 && (nodes_[i].runsBackward || withInputGradient);) {
    auto& node = nodes_[i];
    if (node.program->aliasesInput()) continue;
    const bool wanted = node.needsInputGradient || withInputGradient;
    node.program->backward(edges_[i].value, edges_[i + 1].value, edges_[i + 1].gradient,
                           wanted ? edges_[i].gradient : none_, info);
    if (onReady && !node.segments.empty()) onReady(node.segments, Event{});
  }
}

}  // namespace muster::detail
