#include "muster/parallel/nodes/host_mirrors.h"

#include <algorithm>
#include <utility>

namespace muster {

HostMirrors::HostMirrors(const std::vector<std::vector<StateBlock*>>& states, Options options)
    : options_(std::move(options)) {
  for (const auto& blocks : states) {
    Replica& replica = replicas_.emplace_back();
    replica.onCpu = std::make_unique<Context>();
    for (const StateBlock* const block : blocks) {
      replica.own.push_back(block->values);
      replica.mirrors.push_back(*block);
      // Memory that is not pinned and never touched costs nothing.
      const bool unused = block->kind == BlockKind::Gradients && !options_.gradients;
      const Shape& shape = block->values.shape();
      const DType type = block->values.dtype();
      replica.mirrors.back().values = unused ? Tensor::empty(shape, type) : Tensor::pinned(shape, type);
    }
  }
}

std::vector<std::vector<StateBlock*>> HostMirrors::states() {
  std::vector<std::vector<StateBlock*>> states;
  for (Replica& replica : replicas_) {
    auto& blocks = states.emplace_back();
    for (StateBlock& mirror : replica.mirrors) blocks.push_back(&mirror);
  }
  return states;
}

void HostMirrors::plan(std::span<const SharedBlock> blocks) {
  for (const SharedBlock& block : blocks) {
    Use use{.byMerges = options_.uses(block), .isGradients = block.kind == BlockKind::Gradients};
    const bool updated =
        options_.gradients && (block.kind == BlockKind::Parameters || block.kind == BlockKind::UpdaterState);
    use.looked = !use.isGradients && (!use.byMerges || updated);
    use.afterUpdate = options_.gradients && block.kind == BlockKind::Statistics;
    uses_.push_back(use);
  }
}

void HostMirrors::arrive(std::size_t local, Context& context) {
  Replica& replica = replicas_[local];
  const bool fetches = !replica.begun && !replica.fetched;
  for (std::size_t b = 0; fetches && b < uses_.size(); ++b)
    if (uses_[b].byMerges) copy(replica.own[b], replica.mirrors[b].values, context);
  if (!replica.arrived) replica.arrived = std::make_unique<Event>(context);
  replica.arrived->record(context);
  if (fetches) replica.arrived->wait();
  replica.fetched = true;
}

void HostMirrors::enqueueAfter(std::size_t local, Context& context) {
  Replica& replica = replicas_[local];
  replica.fetched = false;
  if (!replica.begun) return;
  for (std::size_t b = 0; b < uses_.size(); ++b)
    if (uses_[b].byMerges && uses_[b].afterUpdate == replica.reduced)
      copy(replica.mirrors[b].values, replica.own[b], context);
  replica.reduced = options_.gradients && !replica.reduced;
  replica.begun = replica.reduced;
}

void HostMirrors::load() {
  for (Replica& replica : replicas_) {
    for (std::size_t b = 0; b < uses_.size(); ++b)
      if (!uses_[b].isGradients) copy(replica.mirrors[b].values, replica.own[b]);
    replica.fetched = replica.begun = replica.reduced = false;
  }
}

void HostMirrors::refresh() {
  if (std::ranges::none_of(uses_, &Use::looked)) return;  // a lost device would not matter then
  for (Replica& replica : replicas_) {
    if (replica.arrived) replica.arrived->wait();
    for (std::size_t b = 0; b < uses_.size(); ++b)
      if (uses_[b].looked) copy(replica.own[b], replica.mirrors[b].values);
  }
}

}  // namespace muster
