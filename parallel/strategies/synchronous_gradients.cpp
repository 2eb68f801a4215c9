#include "muster/parallel/strategies/synchronous_gradients.h"

#include "muster/core/base/error.h"

namespace muster {

void SynchronousGradients::begin(const Exchange& exchange) {
  const Tensor& parameters = exchange.block(BlockKind::Parameters).replicas[0];
  const Tensor& gradients = exchange.block(BlockKind::Gradients).replicas[0];
  require(parameters.shape() == gradients.shape() && parameters.dtype() == gradients.dtype(),
          "synchronous gradients: the model's gradients are {}, its parameters {}", gradients.toString(),
          parameters.toString());
}

std::int64_t SynchronousGradients::meet(int participant, const Round& round, Exchange& exchange,
                                        Context& context) {
  return exchange.merge(participant, exchange.block(BlockKind::Gradients), round.weights, context);
}

std::int64_t SynchronousGradients::settle(int participant, const Round& round, Exchange& exchange,
                                          Context& context) {
  std::int64_t bytes = 0;
  for (const auto& block : exchange.blocks())
    if (block.kind == BlockKind::Statistics)
      bytes += exchange.merge(participant, block, round.weights, context);
  return bytes;
}

}  // namespace muster
