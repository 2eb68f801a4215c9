#include "muster/core/nn/compile/network_state.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/device/memory_room.h"

namespace muster::detail {
namespace {

constexpr std::pair<MergeRule, const char*> kStatisticsBlocks[] = {
    {MergeRule::Average, "statistics"},
    {MergeRule::Moments, "moments"},
    {MergeRule::Keep, "kept statistics"},
    {MergeRule::Reset, "reset statistics"},
};

std::string fullName(const NetworkNode& node, const ParameterSpec& spec) {
  return node.name + "." + spec.name;
}

std::shared_ptr<const SegmentTable> parameterSegments(const NetworkPlan& plan) {
  auto table = std::make_shared<SegmentTable>();
  for (const auto& node : plan.nodes)
    for (const auto& spec : node.module->parameters(node.inputShapes)) {
      require(std::isfinite(spec.learningRateScale) && spec.learningRateScale >= 0,
              "network: the learning-rate scale of {} must be finite and not negative, got {}",
              fullName(node, spec), spec.learningRateScale);
      table->add({.name = fullName(node, spec),
                  .shape = spec.shape,
                  .learningRateScale = spec.learningRateScale * node.settings.learningRate,
                  .regularised = spec.regularised,
                  .frozen = spec.frozen || node.settings.frozen});
    }
  return table;
}

/// A node's statistics with merge rule `rule`, in order.
std::vector<ParameterSpec> statisticsOf(const NetworkNode& node, MergeRule rule) {
  auto specs = node.module->statistics(node.inputShapes);
  std::erase_if(specs, [&](const ParameterSpec& spec) { return spec.merge != rule; });
  return specs;
}

/// Moments come in pairs: a mean and its variance.
void requirePairs(const NetworkNode& node, const std::vector<ParameterSpec>& specs) {
  for (std::size_t i = 0; i < specs.size(); i += 2)
    require(i + 1 < specs.size() && specs[i].shape == specs[i + 1].shape,
            "network: {} {} is merged as moments, so a variance of its shape must follow it",
            fullName(node, specs[i]), specs[i].shape.toString());
}

/// Moments are groups of two tensors, other statistics groups of one. Part p holds every group's p-th tensor.
std::shared_ptr<const SegmentTable> statisticsSegments(const NetworkPlan& plan, MergeRule rule) {
  auto table = std::make_shared<SegmentTable>();
  const std::size_t parts = rule == MergeRule::Moments ? 2 : 1;
  for (std::size_t part = 0; part < parts; ++part)
    for (const auto& node : plan.nodes) {
      const auto specs = statisticsOf(node, rule);
      if (parts == 2) requirePairs(node, specs);
      for (std::size_t i = part; i < specs.size(); i += parts)
        table->add({.name = fullName(node, specs[i]), .shape = specs[i].shape, .regularised = false});
    }
  return table;
}

void viewParameters(NetworkPlan& plan, const StateBlock& parameters, const StateBlock& gradients) {
  std::size_t next = 0;
  for (auto& node : plan.nodes) {
    const auto count = node.module->parameters(node.inputShapes).size();
    node.segments = std::span(parameters.segments->segments).subspan(next, count);
    for (const auto& segment : node.segments) {
      node.parameters.push_back(parameters.segment(segment));
      node.gradients.push_back(gradients.segment(segment));
    }
    next += count;
  }
}

void viewStatistics(NetworkPlan& plan, std::span<const StateBlock> blocks) {
  std::map<std::string_view, Tensor> byName;
  for (const auto& block : blocks)
    for (const auto& segment : block.segments->segments) byName.emplace(segment.name, block.segment(segment));
  for (auto& node : plan.nodes)
    for (const auto& spec : node.module->statistics(node.inputShapes))
      if (const auto found = byName.find(fullName(node, spec)); found != byName.end())
        node.statistics.push_back(found->second);
}

/// @param values  on the CPU.  @param name  of the parameter in the network.
void drawParameter(Tensor& values, const ParameterSpec& spec, std::uint64_t seed, const std::string& name) {
  if (spec.parts.empty()) return initialize(values, spec.init, spec.fanIn, spec.fanOut, seed, name);
  const auto parts = static_cast<std::int64_t>(spec.parts.size());
  require(spec.shape.rank() > 0 && spec.shape[0] % parts == 0,
          "network: {} {} cannot start in {} equal parts", name, spec.shape.toString(), parts);
  const std::int64_t size = spec.shape.elements() / parts;
  for (std::int64_t part = 0; part < parts; ++part) {
    Tensor view = values.slice(part * size, {size});
    initialize(view, spec.parts[static_cast<std::size_t>(part)], spec.fanIn, spec.fanOut, seed,
               fmt::format("{}[{}]", name, part));
  }
}

}  // namespace

void requireRoom(const SegmentTable& parameters, std::size_t blocks, const std::string& root) {
  const auto bytesOf = [](std::int64_t elements) { return sizeof(float) * static_cast<double>(elements); };
  const double bytes = bytesOf(parameters.elements) * static_cast<double>(blocks);
  if (bytes < kLargeMemory) return;
  const Segment& largest = *std::ranges::max_element(
      parameters.segments, {}, [](const Segment& segment) { return segment.shape.elements(); });
  requireMemoryRoom(bytes, "network: its parameters, gradients and updater state take",
                    fmt::format("most of it: {} {} x {:.1f} MB", largest.name, blocks,
                                bytesOf(largest.shape.elements()) / 1e6),
                    root);
}

std::vector<StateBlock> makeBlocks(NetworkPlan& plan, Device device, std::size_t more) {
  const auto parameters = parameterSegments(plan);
  if (device.isCpu()) requireRoom(*parameters, 2 + more);
  const auto zeros = [&](const char* name, BlockKind kind, MergeRule rule, const auto& segments) {
    return StateBlock::zeros(name, kind, rule, segments, DType::Float32, device);
  };
  std::vector<StateBlock> blocks{zeros("parameters", BlockKind::Parameters, MergeRule::Average, parameters),
                                 zeros("gradients", BlockKind::Gradients, MergeRule::Keep, parameters)};
  viewParameters(plan, blocks[0], blocks[1]);
  for (const auto& [rule, name] : kStatisticsBlocks)
    if (const auto segments = statisticsSegments(plan, rule); !segments->segments.empty())
      blocks.push_back(zeros(name, BlockKind::Statistics, rule, segments));
  viewStatistics(plan, std::span(blocks).subspan(2));
  return blocks;
}

void drawValues(NetworkPlan& plan, std::uint64_t seed) {
  const auto fill = [&](const std::vector<ParameterSpec>& specs, std::vector<Tensor>& tensors,
                        const std::string& node) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const bool here = tensors[i].device().isCpu();
      Tensor values = here ? tensors[i] : Tensor::empty(tensors[i].shape());
      drawParameter(values, specs[i], seed, node + "." + specs[i].name);
      if (!here) copy(values, tensors[i]);
    }
  };
  for (auto& node : plan.nodes) {
    fill(node.module->parameters(node.inputShapes), node.parameters, node.name);
    fill(node.module->statistics(node.inputShapes), node.statistics, node.name);
  }
}

}  // namespace muster::detail
