#include "muster/parallel/exchange/exchange.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "muster/core/ops/linear_combination.h"

namespace muster {
namespace {

/// Refuses a block that a merge cannot take, before the training.
void requireMergeable(const StateBlock& block) {
  if (block.kind != BlockKind::Gradients &&
      (block.merge == MergeRule::Keep || block.merge == MergeRule::Reset))
    return;
  const DType type = block.values.dtype();
  if ((type != DType::Float32 && type != DType::Float64) || block.values.layout() != Layout::RowMajor)
    throw InvalidArgument(
        fmt::format("exchange: block {} is {}; what is merged must be float32 or float64, and row-major",
                    block.name, block.values.toString()));
  require(block.merge != MergeRule::Moments || block.values.elements() % 2 == 0,
          "exchange: block {} is to be merged as means and variances, but has {} elements", block.name,
          block.values.elements());
}

/// Tensors of zeros like the replicas, one for each group of workers.
std::vector<Tensor> oneForEachGroup(std::span<const Tensor> replicas, std::span<const std::size_t> groups) {
  std::vector<Tensor> copies;
  for (std::size_t w = 0; w < replicas.size(); ++w) {
    const auto first = static_cast<std::size_t>(std::ranges::find(groups, groups[w]) - groups.begin());
    const Tensor& like = replicas[w];
    copies.push_back(first < w ? copies[first] : Tensor::zeros(like.shape(), like.dtype(), like.device()));
  }
  return copies;
}

MergeRule ruleOf(const StateBlock& block, UpdaterState updaterState) {
  if (block.kind == BlockKind::Gradients) return MergeRule::Average;
  if (block.kind == BlockKind::UpdaterState && updaterState == UpdaterState::Keep) return MergeRule::Keep;
  if (block.kind == BlockKind::UpdaterState && updaterState == UpdaterState::Reset) return MergeRule::Reset;
  return block.merge;
}

/// Allocates a strategy's block: of the parameters' size on their device, or numbers on the CPU.
StrategyState allocate(const StrategyBlock& declared, const SharedBlock& parameters, std::size_t senders) {
  using Place = StrategyBlock::Place;
  const bool shared = declared.place == Place::MergedCopy;
  const auto& beside = shared ? parameters.mergedCopies : parameters.replicas;
  StrategyState state{.declared = declared,
                      .apart = shared                             ? 1
                               : declared.place == Place::Replica ? beside.size()
                                                                  : senders,
                      .values = {}};
  const DType type = declared.dtype.value_or(beside.front().dtype());
  for (std::size_t w = 0; w < beside.size(); ++w) {
    const auto same = std::ranges::find(beside, beside[w].raw(), &Tensor::raw) - beside.begin();
    const std::size_t first = shared ? static_cast<std::size_t>(same) : w % state.apart;
    const Tensor& like = beside[w];
    state.values.push_back(first < w              ? state.values[first]
                           : declared.numbers > 0 ? Tensor::zeros({declared.numbers}, DType::Float64)
                           : like.defined()       ? Tensor::zeros(like.shape(), type, like.device())
                                            : Tensor::view(nullptr, like.shape(), type));  // on another node
  }
  return state;
}

}  // namespace

void validate(UpdaterState state) {
  require(state == UpdaterState::Average || state == UpdaterState::Keep || state == UpdaterState::Reset,
          "updaterState: there is no choice {}", static_cast<int>(state));
}

std::vector<SharedBlock> sharedBlocks(const std::vector<std::vector<StateBlock*>>& states,
                                      UpdaterState updaterState, std::span<const std::size_t> groups) {
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
                       .rule = ruleOf(first, updaterState),
                       .replicas = {},
                       .mergedCopies = {},
                       .segments = first.segments,
                       .whole = Fragment::whole(first.values.elements())};
    for (std::size_t w = 0; w < states.size(); ++w) {
      const StateBlock& block = *states[w][b];
      require(block.name == first.name && block.values.shape() == first.values.shape(),
              "exchange: block {} {} of worker {} differs from block {} {} of worker 0", block.name,
              block.values.shape().toString(), w, first.name, first.values.shape().toString());
      shared.replicas.push_back(block.values);
    }
    if (first.kind != BlockKind::Gradients) shared.mergedCopies = oneForEachGroup(shared.replicas, groups);
    blocks.push_back(std::move(shared));
  }
  return blocks;
}

Spread spreadAbout(const Tensor& mean, std::span<const Tensor> replicas, std::span<const double> weights,
                   std::span<const std::size_t> workers, Slice slice, Context& context) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  Spread spread;
  for (const std::size_t w : workers)
    if (weights[w] > 0)
      spread.distance +=
          weights[w] / total * squaredDistance(replicas[w], mean, slice.begin, slice.end, context);
  spread.norm = squaredDistance(mean, Tensor(), slice.begin, slice.end, context);
  return spread;
}

std::int64_t bytesToMerge(const SharedBlock& block, std::size_t participant,
                          std::span<const double> weights) {
  const bool travels = weights.size() > 1 && weights[participant] > 0 && block.rule != MergeRule::Reset &&
                       block.rule != MergeRule::Keep;
  return travels ? static_cast<std::int64_t>(block.replicas[participant].bytes()) : 0;
}

std::string_view nameOf(BlockKind kind) {
  return kind == BlockKind::Parameters     ? "parameters"
         : kind == BlockKind::Gradients    ? "gradients"
         : kind == BlockKind::Statistics   ? "statistics"
         : kind == BlockKind::UpdaterState ? "updater state"
                                           : "counters";
}

const SharedBlock& Exchange::block(BlockKind kind) const {
  const auto all = blocks();
  const auto count = std::ranges::count(all, kind, &SharedBlock::kind);
  require(count == 1, "the strategy needs a model with one block of {}, this one has {}", nameOf(kind),
          count);
  return *std::ranges::find(all, kind, &SharedBlock::kind);
}

void Exchange::allGather(std::span<const std::byte> own, std::span<std::byte> all) const {
  if (nodeGroup_) return nodeGroup_->allGather(own, all);
  std::ranges::copy(own, all.begin());
}

void Exchange::makeStrategyBlocks(std::span<const StrategyBlock> declared) {
  std::vector<StrategyState> made;
  for (const auto& one : declared) {
    const auto sameName = [&](const StrategyState& other) { return other.declared.name == one.name; };
    require(!one.name.empty() && std::ranges::none_of(made, sameName),
            "strategy: each of its blocks needs a name of its own, got \"{}\" {}", one.name,
            one.name.empty() ? "" : "twice");
    require(one.numbers >= 0 && (one.numbers == 0 || one.place == StrategyBlock::Place::Replica),
            "strategy: block \"{}\" asks for {} numbers, which a replica can have, and no merged copy",
            one.name, one.numbers);
    require(one.dtype.value_or(DType::Float32) == DType::Float32 || one.dtype == DType::Float64,
            "strategy: block \"{}\" must be float32 or float64", one.name);
    made.push_back(allocate(one, block(BlockKind::Parameters), static_cast<std::size_t>(topology_.senders)));
  }
  strategyBlocks_ = std::move(made);
}

const StrategyState& Exchange::strategyBlock(std::string_view name) const {
  const auto found = std::ranges::find_if(
      strategyBlocks_, [&](const StrategyState& state) { return state.declared.name == name; });
  require(found != strategyBlocks_.end(), "strategy: it has declared no block \"{}\"", name);
  return *found;
}

void Exchange::moments(int, const SharedBlock& block, std::span<const double>, double, Context&) {
  throw InvalidArgument(
      fmt::format("mergeCopy: block {} holds means and variances, which this exchange cannot "
                  "mix into a merged copy alone",
                  block.name));
}

}  // namespace muster
