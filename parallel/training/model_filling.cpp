#include "muster/parallel/training/model_filling.h"

#include <algorithm>
#include <new>

#include "muster/core/base/error.h"
#include "muster/core/optim/finite_gradient.h"
#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/training/block_memory.h"
#include "muster/parallel/training/strategy_state.h"
#include "muster/parallel/training/worker.h"

namespace muster {
namespace {

/// Operations on devices do not check their results, so these are checked before the model takes them.
void requireFiniteMerge(std::span<const SharedBlock> blocks, std::span<const Tensor> merged) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!merged[b].defined()) continue;
    const StateBlock onCpu{.name = blocks[b].name,
                           .kind = blocks[b].kind,
                           .values = copyTo(merged[b], Device::cpu()),
                           .segments = blocks[b].segments};
    requireFiniteBlock(onCpu, fmt::format("after the last merge the {}", onCpu.name));
  }
}

}  // namespace

void ModelFilling::begin() {
  modelValues_.clear();
  for (const auto* block : sharedState(model_)) modelValues_.push_back(block->values);
  merged_.reserve(modelValues_.size());
}

std::optional<std::int64_t> ModelFilling::updatesAfterReset() const {
  if (traits_.updaterState != UpdaterState::Reset) return {};
  const auto first = static_cast<std::size_t>(place_.worker(0));
  const OwnUpdates& own = *OwnUpdates::find(exchange_, first);
  if (traits_.localWork == LocalWork::Gradient) return static_cast<std::int64_t>(own.count);
  return own.mergedCopyReset != 0 ? std::optional<std::int64_t>(0) : std::nullopt;
}

bool ModelFilling::isUnchanged() {
  if (!filled_) return false;
  const auto merged = mergedValues();
  for (std::size_t b = 0; b < merged.size(); ++b)
    if (merged[b].defined() && !sameBytes(merged[b], modelValues_.at(b))) return false;
  return !merged.empty();
}

bool ModelFilling::fill(bool afterFailure, bool together) {
  const auto merged = mergedValues();
  if (merged.empty()) return false;
  if (!exchange_.topology().checksResults) requireFiniteMerge(exchange_.blocks(), merged);
  try {
    try {
      prepareSavedState(exchange_, model_, afterFailure, together);
    } catch (const std::exception& error) {
      const bool outOfMemory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                               dynamic_cast<const OutOfMemory*>(&error) != nullptr;
      if (!afterFailure || !outOfMemory) throw;
      model_.strategyState().clear();  // the strategy's state is reset
    }
    for (std::size_t b = 0; b < merged.size(); ++b)
      if (merged[b].defined()) copy(merged[b], modelValues_.at(b));
    saveStrategyState(exchange_, model_, together);
    filled_ = true;
  } catch (...) {
    model_.strategyState().clear();
    throw;
  }
  return true;
}

std::span<const Tensor> ModelFilling::mergedValues() {
  const auto whole = std::ranges::find_if(workers_, [](const auto& worker) { return worker->whole(); });
  const bool ofReplica = traits_.localWork == LocalWork::Gradient;
  merged_.clear();
  if (ofReplica && whole == workers_.end()) return {};
  for (const auto& block : exchange_.blocks()) {
    // Forward passes change a replica's statistics between merges, so their merged copy is taken.
    const bool updated = block.kind == BlockKind::Parameters || block.kind == BlockKind::UpdaterState;
    const bool source = block.kind == BlockKind::Parameters && !traits_.modelSource.empty();
    merged_.push_back(ofReplica && updated
                          ? block.replicas[static_cast<std::size_t>((*whole)->thread().index())]
                      : source                ? exchange_.strategyBlock(traits_.modelSource).values.front()
                      : block.hasMergedCopy() ? block.mergedCopy()
                                              : Tensor());
  }
  return merged_;
}

}  // namespace muster
