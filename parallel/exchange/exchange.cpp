#include "muster/parallel/exchange/exchange.h"

#include <algorithm>

#include "muster/core/base/error.h"

namespace muster {

constexpr std::int64_t kSliceAlignment = 16;  // float32 in 64 bytes: no two participants share a cache line

namespace {

/// What cannot be merged is refused before anybody trains, not in the middle of a merge.
void requireMergeable(const StateBlock& block) {
  if (block.kind != BlockKind::Gradients &&
      (block.merge == MergeRule::Keep || block.merge == MergeRule::Reset))
    return;
  const DType type = block.values.dtype();
  if ((type != DType::Float32 && type != DType::Float64) || block.values.layout() != Layout::RowMajor)
    throw InvalidArgument(
        fmt::format("exchange: block {} is {}; what is merged must be float32 or float64, and "
                    "row-major",
                    block.name, block.values.toString()));
  require(block.merge != MergeRule::Moments || block.values.elements() % 2 == 0,
          "exchange: block {} is to be merged as means and variances, but has {} elements", block.name,
          block.values.elements());
}

/// One for each group of workers.
void addShadows(SharedBlock& block, std::span<const int> groups) {
  for (std::size_t w = 0; w < block.replicas.size(); ++w) {
    const Tensor& replica = block.replicas[w];
    const auto first = static_cast<std::size_t>(std::ranges::find(groups, groups[w]) - groups.begin());
    block.shadows.push_back(first < w ? block.shadows[first]
                                      : Tensor::zeros(replica.shape(), replica.dtype(), replica.device()));
  }
  block.shadow = block.shadows.front();
}

}  // namespace

std::vector<SharedBlock> sharedBlocks(const std::vector<std::vector<StateBlock*>>& states,
                                      bool averageUpdaters, std::span<const int> groups) {
  require(!states.empty(), "exchange: there are no replicas");
  for (std::size_t w = 0; w < states.size(); ++w)
    require(states[w].size() == states.front().size(),
            "exchange: worker {} has {} state blocks, worker 0 has {}", w, states[w].size(),
            states.front().size());
  std::vector<SharedBlock> blocks;
  for (std::size_t b = 0; b < states.front().size(); ++b) {
    const StateBlock& first = *states.front()[b];
    requireMergeable(first);
    SharedBlock shared{.name = first.name,
                       .kind = first.kind,
                       .rule = first.merge,
                       .replicas = {},
                       .shadow = {},
                       .shadows = {}};
    if (first.kind == BlockKind::Gradients) shared.rule = MergeRule::Average;
    if (first.kind == BlockKind::UpdaterState && !averageUpdaters) shared.rule = MergeRule::Keep;
    for (std::size_t w = 0; w < states.size(); ++w) {
      const StateBlock& block = *states[w][b];
      require(block.name == first.name && block.values.shape() == first.values.shape(),
              "exchange: block {} {} of worker {} differs from block {} {} of worker 0", block.name,
              block.values.shape().toString(), w, first.name, first.values.shape().toString());
      shared.replicas.push_back(block.values);
    }
    if (first.kind != BlockKind::Gradients) addShadows(shared, groups);
    blocks.push_back(std::move(shared));
  }
  return blocks;
}

std::int64_t bytesToMerge(const SharedBlock& block, std::size_t participant,
                          std::span<const double> weights) {
  const bool travels = weights.size() > 1 && weights[participant] > 0 && block.rule != MergeRule::Reset &&
                       block.rule != MergeRule::Keep;
  return travels ? static_cast<std::int64_t>(block.replicas[participant].bytes()) : 0;
}

Slice sliceOf(std::int64_t elements, int participant, int participants) {
  const std::int64_t units = (elements + kSliceAlignment - 1) / kSliceAlignment;
  const auto boundary = [&](int p) { return std::min(elements, units * p / participants * kSliceAlignment); };
  return {boundary(participant), boundary(participant + 1)};
}

const SharedBlock& Exchange::block(BlockKind kind) const {
  const auto all = blocks();
  const auto count = std::ranges::count(all, kind, &SharedBlock::kind);
  require(count == 1, "the training mode wants a model with one block of {}, this one has {}",
          kind == BlockKind::Gradients ? "gradients" : "parameters", count);
  return *std::ranges::find(all, kind, &SharedBlock::kind);
}

std::int64_t Exchange::mergeState(int participant, std::span<const double> weights, Context& context,
                                  Spread* spread) {
  std::int64_t bytes = 0;
  for (const auto& some : blocks())
    if (some.kind != BlockKind::Gradients)
      bytes +=
          merge(participant, some, weights, context, some.kind == BlockKind::Parameters ? spread : nullptr);
  return bytes;
}

}  // namespace muster
