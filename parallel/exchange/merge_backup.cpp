#include "muster/parallel/exchange/merge_backup.h"

#include <cstring>
#include <utility>

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {

void MergeBackup::make(const Exchange& exchange, bool statisticsAlone) {
  std::vector<Copy> copies;
  const auto add = [&](std::string name, const Tensor& live) {
    copies.push_back({std::move(name), &live, cloneTensor(live)});
  };
  for (const SharedBlock& block : exchange.blocks())
    if (block.hasMergedCopy() && (!statisticsAlone || block.kind == BlockKind::Statistics))
      add(block.name, block.mergedCopy());
  for (const StrategyState& state : exchange.strategyBlocks())
    if (state.declared.place == StrategyBlock::Place::MergedCopy && state.declared.saved &&
        !state.declared.inFlight)
      add(state.declared.name, state.values.front());
  copies_ = std::move(copies);
  made_ = true;
}

void MergeBackup::keep(int part, int parts) {
  for (const Copy& copy : copies_) {
    const Slice own = sliceOf(copy.live->elements(), part, parts);
    if (own.length() == 0) continue;
    const Tensor from = muster::part(*copy.live, own);
    std::memcpy(muster::part(copy.kept, own).raw(), from.raw(), from.bytes());
  }
}

void MergeBackup::restore() const {
  for (const Copy& copy : copies_) std::memcpy(copy.live->raw(), copy.kept.raw(), copy.live->bytes());
}

void MergeBackup::keep(Context& context) {
  for (Copy& copy : copies_) muster::copy(*copy.live, copy.kept, context);
}

void MergeBackup::restore(Context& context) const {
  for (const Copy& copy : copies_) {
    Tensor live = *copy.live;
    muster::copy(copy.kept, live, context);
  }
}

}  // namespace muster
