#include "muster/parallel/averaging/synchronous_gradients.h"

namespace muster {

std::int64_t SynchronousGradients::meet(int participant, const Round& round, Collective& collective,
                                        Context& context) {
  std::int64_t bytes = 0;
  for (const auto& block : collective.blocks())
    if (block.kind == BlockKind::Gradients || block.kind == BlockKind::Statistics)
      bytes += collective.merge(participant, block, round.weights, context);
  return bytes;
}

}  // namespace muster
