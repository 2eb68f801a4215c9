#include "muster/parallel/training/worker_blocks.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/parallel/training/strategy_state.h"

namespace muster {

/// Waits for the other nodes.
std::vector<std::int64_t> WorkerBlocks::ofAllNodes(std::vector<std::int64_t> own) const {
  std::vector<std::int64_t> all(own.size() * static_cast<std::size_t>(place_.nodes));
  exchange_.allGather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  for (int w = 0; w < place_.workers(); ++w) {
    const auto node = static_cast<std::size_t>(w % place_.nodes);
    own[static_cast<std::size_t>(w)] = all[node * own.size() + static_cast<std::size_t>(w)];
  }
  return own;
}

bool WorkerBlocks::isCollected(const SharedBlock& block) const {
  return place_.nodes > 1 && block.hasMergedCopy() &&
         (traits_.replicasDiffer || block.rule == MergeRule::Keep);
}

bool WorkerBlocks::any() const {
  const auto isOfReplica = [](const StrategyState& state) {
    return state.declared.saved && state.declared.place == StrategyBlock::Place::Replica;
  };
  return std::ranges::any_of(exchange_.blocks(), [this](const auto& block) { return isCollected(block); }) ||
         std::ranges::any_of(exchange_.strategyBlocks(), isOfReplica);
}

CollectedBlock WorkerBlocks::collect(const SharedBlock& block, std::span<const std::int64_t> examples) const {
  if (!isCollected(block)) return {};
  const Tensor& like = block.mergedCopy();
  const Tensor all = Tensor::empty(like.shape().prepend(place_.workers()), like.dtype());
  exchange_.nodeGroup()->gather(block, all);
  if (block.rule != MergeRule::Keep) return {.replicas = all};
  return {.replicas = all, .mean = meanOf(all, std::vector<double>(examples.begin(), examples.end()))};
}

bool WorkerBlocks::differUnexpectedly() const {
  return std::ranges::any_of(exchange_.blocks(), [this](const SharedBlock& block) {
    if (!block.hasMergedCopy() || isCollected(block)) return false;
    const Tensor& first = block.replicas[static_cast<std::size_t>(place_.worker(0))];
    return !std::ranges::all_of(block.replicas,
                                [&](const Tensor& own) { return !own.defined() || sameBytes(own, first); });
  });
}

void WorkerBlocks::takeMean(const SharedBlock& block, std::vector<std::int64_t> examples,
                            Context& context) const {
  // A merge overwrites its inputs, and the workers' own blocks must not change: merge copies of them.
  SharedBlock copies{.name = block.name,
                     .kind = block.kind,
                     .rule = MergeRule::Average,
                     .replicas = {},
                     .mergedCopies = block.mergedCopies,
                     .segments = block.segments};
  const auto trained = ofAllNodes(std::move(examples));
  std::vector<double> weights;
  double total = 0;
  for (std::size_t w = 0; w < trained.size(); ++w) {
    const Tensor& own = block.replicas[w];
    copies.replicas.push_back(own.defined() ? cloneTensor(own) : own);
    weights.push_back(static_cast<double>(trained[w]));
    total += weights.back();
  }
  if (total == 0) return;
  try {
    for (int l = 0; l < place_.local; ++l) {
      const int w = place_.worker(l);
      exchange_.merge(w, copies, weights, exchange_.opsContext(w, context), nullptr);
      exchange_.end(w);
    }
  } catch (...) {  // messages may still be sent from the copies
    if (place_.nodes > 1) exchange_.abort();
    exchange_.wait();
    throw;
  }
  exchange_.wait();
}

}  // namespace muster
