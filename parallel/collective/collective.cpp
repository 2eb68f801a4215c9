#include "muster/parallel/collective/collective.h"

#include <algorithm>

#include "muster/core/base/error.h"

namespace muster {

const SharedBlock& Collective::block(BlockKind kind) const {
  const auto all = blocks();
  const auto count = std::ranges::count(all, kind, &SharedBlock::kind);
  require(count == 1, "the training mode wants a model with one block of {}, this one has {}",
          kind == BlockKind::Gradients ? "gradients" : "parameters", count);
  return *std::ranges::find(all, kind, &SharedBlock::kind);
}

std::int64_t Collective::mergeState(int participant, std::span<const double> weights, Context& context) {
  std::int64_t bytes = 0;
  for (const auto& some : blocks())
    if (some.kind != BlockKind::Gradients) bytes += merge(participant, some, weights, context);
  return bytes;
}

}  // namespace muster
