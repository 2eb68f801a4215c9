#include "muster/parallel/averaging/synchronous_gradients.h"

#include "muster/core/base/error.h"

namespace muster {

void SynchronousGradients::begin(const Collective& collective) {
  const Tensor& parameters = collective.block(BlockKind::Parameters).replicas[0];
  const Tensor& gradients = collective.block(BlockKind::Gradients).replicas[0];
  require(parameters.shape() == gradients.shape() && parameters.dtype() == gradients.dtype(),
          "synchronous gradients: the model's gradients are {}, its parameters {}", gradients.toString(),
          parameters.toString());
}

std::int64_t SynchronousGradients::meet(int participant, const Round& round, Collective& collective,
                                        Context& context) {
  return collective.merge(participant, collective.block(BlockKind::Gradients), round.weights, context);
}

std::int64_t SynchronousGradients::settle(int participant, const Round& round, Collective& collective,
                                          Context& context) {
  std::int64_t bytes = 0;
  for (const auto& block : collective.blocks())
    if (block.kind == BlockKind::Statistics)
      bytes += collective.merge(participant, block, round.weights, context);
  return bytes;
}

}  // namespace muster
