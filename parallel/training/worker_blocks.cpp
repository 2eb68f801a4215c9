#include "muster/parallel/training/worker_blocks.h"

#include <algorithm>

#include "muster/parallel/training/strategy_state.h"

namespace muster {
namespace {

constexpr std::string_view kMerged = "merged.", kReplicas = "replicas.", kMean = "mean.";

std::string nameOf(std::string_view prefix, const SharedBlock& block) {
  return fmt::format("{}{}", prefix, block.name);
}

/// Worker w's part of what was saved: the values of all workers, or one set for all.
Tensor partOf(const Tensor& saved, std::size_t w, const Tensor& like) {
  const std::int64_t own = saved.shape()[0] == 1 ? 0 : static_cast<std::int64_t>(w);
  return saved.slice(own * like.elements(), like.shape());
}

/// @param what  the saved form of the block, for the message.
void requireFits(const Tensor& saved, const Shape& shape, const Tensor& like, std::string_view what,
                 const SharedBlock& block) {
  requireSaved(saved.shape() == shape && saved.dtype() == like.dtype(),
               "training state: {} of the {} is {}, but the model has {} {}", what, block.name,
               saved.toString(), toString(like.dtype()), shape.toString());
}

/// The replicas in one tensor, or one of them if all are equal.
/// @param collected  the tensor that they are views of, if there is one.
Tensor together(std::span<const Tensor> replicas, const Tensor& collected) {
  const Tensor& first = replicas.front();
  const bool same = std::ranges::all_of(replicas, [&](const Tensor& t) { return sameBytes(t, first); });
  if (!same && collected.defined()) return collected;
  const std::size_t count = same ? 1 : replicas.size();
  Tensor all = Tensor::empty(first.shape().prepend(static_cast<std::int64_t>(count)), first.dtype());
  for (std::size_t w = 0; w < count; ++w) {
    Tensor part = partOf(all, w, first);
    copy(replicas[w], part);
  }
  return all;
}

}  // namespace

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

bool WorkerBlocks::differUnexpectedly() const {
  return std::ranges::any_of(exchange_.blocks(), [this](const SharedBlock& block) {
    if (!block.hasMergedCopy() || isCollected(block)) return false;
    const Tensor& first = block.replicas[static_cast<std::size_t>(place_.worker(0))];
    return !std::ranges::all_of(block.replicas,
                                [&](const Tensor& own) { return !own.defined() || sameBytes(own, first); });
  });
}

void WorkerBlocks::save(TrainingState& state, std::span<const Tensor> ofModel,
                        const std::vector<std::int64_t>& examples) const {
  const std::vector<double> weights(examples.begin(), examples.end());
  for (std::size_t b = 0; b < ofModel.size(); ++b) {
    const SharedBlock& block = exchange_.blocks()[b];
    if (!ofModel[b].defined()) continue;
    const bool counts = traits_.localWork == LocalWork::Step;  // else only the replicas are current
    const Tensor& merged = counts && block.hasMergedCopy() ? block.mergedCopy() : ofModel[b];
    if (!sameBytes(merged, ofModel[b]))
      state.push_back({nameOf(kMerged, block), cloneTensor(copyTo(merged, Device::cpu()))});
    auto replicas = block.replicas;
    Tensor all;
    if (isCollected(block)) {
      all = Tensor::empty(merged.shape().prepend(place_.workers()), merged.dtype());
      exchange_.nodeGroup()->gather(block, all);
      for (std::size_t w = 0; w < replicas.size(); ++w) replicas[w] = partOf(all, w, merged);
      const Tensor mean = block.rule == MergeRule::Keep ? meanOf(all, weights) : Tensor();
      if (mean.defined()) state.push_back({nameOf(kMean, block), mean});
    }
    std::erase_if(replicas, [](const Tensor& own) { return !own.defined(); });  // on other nodes
    if (!std::ranges::all_of(replicas, [&](const Tensor& own) { return sameBytes(own, merged); }))
      state.push_back({nameOf(kReplicas, block), together(replicas, all)});
  }
}

void WorkerBlocks::take(const TrainingState& state, bool own) const {
  for (const SharedBlock& block : exchange_.blocks()) {
    if (!block.hasMergedCopy()) continue;
    const Tensor& like = block.mergedCopy();
    const auto takeForAll = [&](std::string_view prefix, std::string_view what) {
      const Tensor* const saved = findValues(state, nameOf(prefix, block));
      if (saved == nullptr) return;
      requireFits(*saved, like.shape(), like, what, block);
      copyToAll(*saved, block.mergedCopies);
      copyToAll(*saved, block.replicas);
    };
    takeForAll(kMerged, "the merged copy");
    if (!own) takeForAll(kMean, "the mean over the workers");
    const Tensor* const saved = own ? findValues(state, nameOf(kReplicas, block)) : nullptr;
    if (saved == nullptr) continue;
    const bool one = saved->shape().rank() > 0 && saved->shape()[0] == 1;
    requireFits(*saved, like.shape().prepend(one ? 1 : std::ssize(block.replicas)), like,
                "what the workers have", block);
    for (std::size_t w = 0; w < block.replicas.size(); ++w) {
      Tensor target = block.replicas[w];
      if (target.defined()) copy(partOf(*saved, w, like), target);
    }
  }
}

void WorkerBlocks::takeMean(const SharedBlock& block, const std::vector<std::int64_t>& examples,
                            Context& context) const {
  const std::vector<double> weights(examples.begin(), examples.end());
  if (std::ranges::none_of(weights, [](double weight) { return weight > 0; })) return;
  // A merge overwrites its inputs, and the workers' own blocks must not change: merge copies of them.
  SharedBlock copies{.name = block.name,
                     .kind = block.kind,
                     .rule = MergeRule::Average,
                     .replicas = {},
                     .mergedCopies = block.mergedCopies,
                     .segments = block.segments};
  for (const Tensor& own : block.replicas) copies.replicas.push_back(own.defined() ? cloneTensor(own) : own);
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
