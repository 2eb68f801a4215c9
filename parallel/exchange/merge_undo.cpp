#include "muster/parallel/exchange/merge_undo.h"

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {

MergeUndo::MergeUndo(Exchange& exchange, const Options& options) : options_(options), exchange_(exchange) {
  if (options.everyMerge) makeCopies(/*statisticsAlone=*/!options.allState);
}

void MergeUndo::makeCopies(bool statisticsAlone) {
  copies_.clear();  // if memory has run out before
  const auto add = [&](const std::string& name, const Tensor& live) {
    copies_.push_back({name, &live, cloneTensor(live)});
  };
  for (const SharedBlock& block : exchange_.blocks())
    if (block.hasMergedCopy() && (!statisticsAlone || block.kind == BlockKind::Statistics))
      add(block.name, block.mergedCopy());
  for (const auto& [declared, apart, values] : exchange_.strategyBlocks())
    if (declared.place == StrategyBlock::Place::MergedCopy && declared.saved && !declared.inFlight)
      add(declared.name, values.front());
  made_ = true;
}

void MergeUndo::keepPart(int part, int parts) {
  for (const Copy& copy : copies_) {
    const Slice own = sliceOf(copy.live->elements(), part, parts);
    copyOnHost(muster::part(copy.kept, own), muster::part(*copy.live, own));
  }
}

void MergeUndo::keep(int participant) {
  const Topology& where = exchange_.topology();
  if (everyMerge()) keepPart(participant / where.nodes, where.participants / where.nodes);
}

void MergeUndo::keepAll() {
  if (!made_) makeCopies(/*statisticsAlone=*/false);
  keepPart(0, 1);
}

bool MergeUndo::rollBack() {
  if (!made_) return false;
  exchange_.wait();  // what is still sent reads and writes these blocks
  for (const Copy& copy : copies_) copyOnHost(*copy.live, copy.kept);
  return true;
}

}  // namespace muster
