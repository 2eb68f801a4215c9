#include "muster/parallel/exchange/merge_ops.h"

#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

/// To how many a participant sends its replica: the other nodes with a row that reads it; on one node the
/// rows of other workers, where workers that share a row count once.
std::int64_t readers(const Exchange& exchange, const Mixing& mixing, std::size_t own) {
  const auto nodes = static_cast<std::size_t>(exchange.nodes());
  const auto sameReader = [&](std::size_t w, std::size_t other) {
    return nodes > 1 ? w % nodes == other % nodes : mixing.row(w).data() == mixing.row(other).data();
  };
  std::int64_t count = 0;
  for (std::size_t w = 0; w < mixing.workers(); ++w) {
    if (w == own || (nodes > 1 && w % nodes == own % nodes) || !mixing.reads(w, own)) continue;
    bool counted = false;
    for (std::size_t before = 0; before < w && !counted; ++before)
      counted = before != own && sameReader(w, before) && mixing.reads(before, own);
    count += counted ? 0 : 1;
  }
  return count;
}

}  // namespace

void MergeOps::resetUpdates(std::size_t worker) const {
  if (OwnUpdates* const own = OwnUpdates::find(exchange_, worker)) own->count = 0;
}

template <typename F>
void MergeOps::reset(const SharedBlock& block, F isReset, bool mergedCopies) {
  noteReset(block, isReset);
  if (mergedCopies) resetMergedCopies(block);
  eachShare(block.replicas.front().elements(), [&](const Share& share) {
    for (const std::size_t w : share.workers) {
      Tensor own = part(block.replicas[w], share.slice);
      if (isReset(w)) setZero(own, share.context);
    }
  });
}

void MergeOps::resetMergedCopies(const SharedBlock& block) {
  if (!block.hasMergedCopy()) return;
  eachShare(block.mergedCopy().elements(), [&](const Share& share) {
    for (std::size_t i = 0; i < share.workers.size(); ++i) {
      Tensor own = part(block.mergedCopies[share.workers[i]], share.slice);
      if (!seenBefore(block.mergedCopies, share.workers, i)) setZero(own, share.context);
    }
  });
  if (block.kind != BlockKind::UpdaterState) return;
  if (OwnUpdates* const own = OwnUpdates::find(exchange_, static_cast<std::size_t>(participant_)))
    own->mergedCopyReset = 1;
}

void MergeOps::merge(const SharedBlock& block, std::span<const double> weights, Spread* spread) {
  if (spread) *spread = {};
  if (block.rule == MergeRule::Keep) return;
  if (block.rule == MergeRule::Reset)
    return reset(
        block, [](std::size_t) { return true; }, true);
  named(block.replicas[static_cast<std::size_t>(participant_)],
        [&] { exchange_.merge(participant_, block, weights, context_, spread); });
  if (spread) addOverNodes(*spread);
  countBytes(bytesToMerge(block, static_cast<std::size_t>(participant_), weights));
}

void MergeOps::mergeState(std::span<const double> weights, Spread* spread) {
  for (const auto& one : blocks())
    if (one.kind != BlockKind::Gradients)
      merge(one, weights, one.kind == BlockKind::Parameters ? spread : nullptr);
}

void MergeOps::mergeOthers(std::span<const double> weights) {
  for (const auto& one : blocks())
    if (one.kind == BlockKind::UpdaterState || one.kind == BlockKind::Statistics) merge(one, weights);
}

void MergeOps::mergeCopy(const SharedBlock& block, std::span<const double> weights, double keep) {
  if (block.rule == MergeRule::Average)
    return mean(block.replicas, weights, block.mergedCopies, block.whole, keep);
  if (block.rule == MergeRule::Reset) return resetMergedCopies(block);
  if (block.rule == MergeRule::Keep) return;
  requireMean(weights, keep);
  named(block.mergedCopy(), [&] { exchange_.moments(participant_, block, weights, keep, context_); });
  countBytes(bytesToMerge(block, static_cast<std::size_t>(participant_), weights));
}

void MergeOps::mix(const SharedBlock& block, const Mixing& mixing) {
  require(mixing.workers() == block.replicas.size(), "mix: rows for {} workers were given for {}",
          mixing.workers(), block.replicas.size());
  if (block.rule == MergeRule::Keep) return;
  if (block.rule == MergeRule::Reset)
    return reset(
        block, [&](std::size_t w) { return !mixing.row(w).empty(); }, !mixing.merged().empty());
  named(block.replicas[static_cast<std::size_t>(participant_)],
        [&] { exchange_.mix(participant_, block, mixing, context_); });
  const auto own = static_cast<std::size_t>(participant_);
  countBytes(readers(exchange_, mixing, own) * static_cast<std::int64_t>(block.replicas[own].bytes()));
  if (exchange_.nodes() > 1 && !mixing.merged().empty())
    countBytes(bytesToMerge(block, own, mixing.merged()));
}

void MergeOps::mixState(const Mixing& mixing) {
  for (const auto& one : blocks())
    if (one.kind != BlockKind::Gradients) mix(one, mixing);
}

void MergeOps::mixOthers(const Mixing& mixing) {
  for (const auto& one : blocks())
    if (one.kind == BlockKind::UpdaterState || one.kind == BlockKind::Statistics) mix(one, mixing);
}

}  // namespace muster
