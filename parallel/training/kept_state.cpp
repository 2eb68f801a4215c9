// State that workers hold beside the merged copies, and how the user's model gets it.
#include <algorithm>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/training/replica_set.h"
#include "muster/parallel/training/strategy_state.h"

namespace muster {
namespace {

/// Leaves `mean` as it is if nothing was trained. @param replicas  in one tensor.
void formMean(const Tensor& replicas, std::span<const std::int64_t> examples, const Tensor& mean) {
  double total = 0;
  for (const std::int64_t count : examples) total += static_cast<double>(count);
  std::vector<Term> terms;
  for (std::size_t w = 0; w < examples.size(); ++w)
    if (examples[w] > 0)
      terms.push_back({static_cast<double>(examples[w]) / total,
                       replicas.slice(static_cast<std::int64_t>(w) * mean.elements(), mean.shape())});
  Context context;
  if (!terms.empty()) linearCombination(terms, mean, 0, mean.elements(), context);
}

}  // namespace

std::vector<std::int64_t> ReplicaSet::examples() const {
  auto all = examplesBefore_;
  for (const auto& worker : workers_)
    all[static_cast<std::size_t>(worker->thread().index())] += worker->times().examples;
  return all;
}

/// Waits for the other nodes.
std::vector<std::int64_t> ReplicaSet::examplesOfAll() const {
  auto own = examples();
  std::vector<std::int64_t> all(own.size() * static_cast<std::size_t>(place_.nodes));
  exchange_->gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  for (int w = 0; w < place_.workers(); ++w) {
    const auto node = static_cast<std::size_t>(w % place_.nodes);
    own[static_cast<std::size_t>(w)] = all[node * own.size() + static_cast<std::size_t>(w)];
  }
  return own;
}

bool ReplicaSet::isCollected(const SharedBlock& block) const {
  return place_.nodes > 1 && block.hasMergedCopy() &&
         (strategy_.replicasDiffer() || block.rule == MergeRule::Keep);
}

bool ReplicaSet::workersDiffer(const Exchange& exchange) const {
  const auto isOfReplica = [](const StrategyState& state) {
    return state.declared.saved && state.declared.place == StrategyBlock::Place::Replica;
  };
  return std::ranges::any_of(exchange.blocks(), [this](const auto& block) { return isCollected(block); }) ||
         std::ranges::any_of(exchange.strategyBlocks(), isOfReplica);
}

std::vector<Tensor> ReplicaSet::collect(std::span<const std::int64_t> examples) {
  const auto blocks = exchange_->blocks();
  std::vector<Tensor> collected(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!isCollected(blocks[b])) continue;
    const Tensor& like = blocks[b].mergedCopy();
    collected[b] = Tensor::empty(like.shape().prepend(place_.workers()), like.dtype());
    exchange_->collect(blocks[b], collected[b]);
    if (blocks[b].rule != MergeRule::Keep || examples.empty()) continue;
    formMean(collected[b], examples, like);
    copy(mergedValues()[b], modelValues_.at(b));
  }
  return collected;
}

bool ReplicaSet::differUnexpectedly() const {
  return std::ranges::any_of(exchange_->blocks(), [this](const SharedBlock& block) {
    if (!block.hasMergedCopy() || isCollected(block)) return false;
    const Tensor& first = block.replicas[static_cast<std::size_t>(place_.worker(0))];
    return !std::ranges::all_of(block.replicas,
                                [&](const Tensor& own) { return !own.defined() || sameBytes(own, first); });
  });
}

void ReplicaSet::takeMeanOfKept(const SharedBlock& block) {
  // A merge overwrites its inputs, and the workers' own blocks must not change: merge copies of them.
  SharedBlock copies{.name = block.name,
                     .kind = block.kind,
                     .rule = MergeRule::Average,
                     .replicas = {},
                     .mergedCopies = block.mergedCopies,
                     .segments = block.segments};
  const auto trained = examplesOfAll();
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
      exchange_->merge(w, copies, weights, exchange_->verbContext(w, model_.context()), nullptr);
      exchange_->end(w);
    }
  } catch (...) {  // messages may still be sent from the copies
    if (place_.nodes > 1) exchange_->abort();
    exchange_->wait();
    throw;
  }
  exchange_->wait();
}

}  // namespace muster
