#include "muster/core/nn/detail/chain_state.h"

#include <cmath>
#include <utility>

#include "muster/core/base/error.h"

namespace muster::detail {
namespace {

constexpr std::pair<MergeRule, const char*> kStatisticsBlocks[] = {
    {MergeRule::Average, "statistics"},
    {MergeRule::Moments, "moments"},
    {MergeRule::Keep, "kept statistics"},
    {MergeRule::Reset, "reset statistics"},
};

std::string fullName(const ChainLayer& layer, const ParameterSpec& spec) {
  return layer.name + "." + spec.name;
}

std::shared_ptr<const SegmentTable> parameterSegments(std::span<const ChainLayer> chain) {
  auto table = std::make_shared<SegmentTable>();
  for (const auto& layer : chain)
    for (const auto& spec : layer.module->parameters(layer.input)) {
      require(std::isfinite(spec.learningRateScale) && spec.learningRateScale >= 0,
              "network: the learning-rate scale of {} must be finite and not negative, got {}",
              fullName(layer, spec), spec.learningRateScale);
      table->add({.name = fullName(layer, spec),
                  .shape = spec.shape,
                  .learningRateScale = spec.learningRateScale,
                  .regularised = spec.regularised,
                  .frozen = spec.frozen});
    }
  return table;
}

/// A layer's statistics that are merged by `rule`, in its order.
std::vector<ParameterSpec> statisticsOf(const ChainLayer& layer, MergeRule rule) {
  auto specs = layer.module->statistics(layer.input);
  std::erase_if(specs, [&](const ParameterSpec& spec) { return spec.merge != rule; });
  return specs;
}

/// Moments come in pairs, a mean and the variance that goes with it.
void requirePairs(const ChainLayer& layer, const std::vector<ParameterSpec>& specs) {
  for (std::size_t i = 0; i < specs.size(); i += 2)
    require(i + 1 < specs.size() && specs[i].shape == specs[i + 1].shape,
            "network: {} {} is merged as moments, so a variance of its shape must follow it",
            fullName(layer, specs[i]), specs[i].shape.toString());
}

/// With as many parts as numbers belong together: part p holds every layer's p-th of them.
std::shared_ptr<const SegmentTable> statisticsSegments(std::span<const ChainLayer> chain, MergeRule rule) {
  auto table = std::make_shared<SegmentTable>();
  const std::size_t parts = rule == MergeRule::Moments ? 2 : 1;
  for (std::size_t part = 0; part < parts; ++part)
    for (const auto& layer : chain) {
      const auto specs = statisticsOf(layer, rule);
      if (parts == 2) requirePairs(layer, specs);
      for (std::size_t i = part; i < specs.size(); i += parts)
        table->add({.name = fullName(layer, specs[i]), .shape = specs[i].shape, .regularised = false});
    }
  return table;
}

void viewParameters(std::vector<ChainLayer>& chain, const StateBlock& parameters,
                    const StateBlock& gradients) {
  std::size_t next = 0;
  for (auto& layer : chain) {
    const auto count = layer.module->parameters(layer.input).size();
    layer.segments = std::span(parameters.segments->segments).subspan(next, count);
    for (const auto& segment : layer.segments) {
      layer.parameters.push_back(parameters.segment(segment));
      layer.gradients.push_back(gradients.segment(segment));
    }
    next += count;
  }
}

void viewStatistics(std::vector<ChainLayer>& chain, std::span<const StateBlock> blocks) {
  for (auto& layer : chain)
    for (const auto& spec : layer.module->statistics(layer.input))
      for (const auto& block : blocks)
        if (block.merge == spec.merge) layer.statistics.push_back(block.segment(fullName(layer, spec)));
}

}  // namespace

std::vector<StateBlock> makeBlocks(std::vector<ChainLayer>& chain) {
  const auto parameters = parameterSegments(chain);
  std::vector<StateBlock> blocks{
      StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, parameters),
      StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, parameters)};
  viewParameters(chain, blocks[0], blocks[1]);
  for (const auto& [rule, name] : kStatisticsBlocks)
    if (const auto segments = statisticsSegments(chain, rule); !segments->segments.empty())
      blocks.push_back(StateBlock::zeros(name, BlockKind::Statistics, rule, segments));
  viewStatistics(chain, std::span(blocks).subspan(2));
  return blocks;
}

}  // namespace muster::detail
