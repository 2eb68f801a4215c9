// State that workers hold beside the merged copies, and how the user's model gets it.
#include <algorithm>

#include "muster/parallel/training/replica_set.h"
#include "muster/parallel/training/strategy_state.h"

namespace muster {

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

bool ReplicaSet::equal() const {
  const bool ofReplica = strategy_.localWork() == LocalWork::Gradient;
  const auto isEqual = [&](const SharedBlock& block) {
    // With gradients all replicas are the same, and the merged copy is not used.
    const bool updated = block.kind == BlockKind::Parameters || block.kind == BlockKind::UpdaterState;
    return !block.hasMergedCopy() || (ofReplica && updated) ||
           std::ranges::all_of(block.replicas, [&](const Tensor& own) {
             return !own.defined() || sameBytes(own, block.mergedCopy());
           });
  };
  return std::ranges::all_of(exchange_->blocks(), isEqual) && blocksShared();
}

bool ReplicaSet::blocksShared() const {
  const bool pending = strategy_.pending();
  return std::ranges::all_of(exchange_->strategyBlocks(), [&](const StrategyState& state) {
    const StrategyBlock& block = state.declared;
    return !block.saved || block.place == StrategyBlock::Place::MergedCopy ||
           (block.place == StrategyBlock::Place::Node && !block.inFlight) || block.numbers > 0 ||
           (block.zeroUnlessPending && !pending);
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
