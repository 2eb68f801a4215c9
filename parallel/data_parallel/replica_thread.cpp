#include "muster/parallel/data_parallel/replica_thread.h"

#include "muster/core/base/error.h"

namespace muster {
ModelBlocks::ModelBlocks(Model& model) : gradients(model.block(BlockKind::Gradients).values) {
  const Tensor& parameters = model.block(BlockKind::Parameters).values;
  require(gradients.shape() == parameters.shape() && gradients.dtype() == parameters.dtype(),
          "the model's gradients are {}, its parameters {}", gradients.toString(), parameters.toString());
  for (const auto& block : model.blocks()) {
    if (block.kind != BlockKind::Gradients) state.push_back(block.values);
    if (block.kind == BlockKind::Statistics) statistics.push_back(block.values);
  }
}

ReplicaThread::ReplicaThread(int number, Placement where, PeerSums& exchange)
    : index(number), placement(std::move(where)), peers(exchange, number), thread([this] {
        model.reset();
        context.reset();
      }) {}

std::string ReplicaThread::name() const {
  return fmt::format("replica {} on {}", index, placement.device.toString());
}

void ReplicaThread::load(const ModelBlocks& truth, bool train) {
  if (stale)
    for (std::size_t b = 0; b < truth.state.size(); ++b) copy(truth.state[b], blocks.state[b]);
  else if (statisticsMoved)
    for (std::size_t b = 0; b < truth.statistics.size(); ++b) copy(truth.statistics[b], blocks.statistics[b]);
  stale = false;
  statisticsMoved = train;
}

void ReplicaThread::bringGradients(Device to) {
  if (blocks.gradients.device() == to) {
    gradientsThere = blocks.gradients;
    return;
  }
  const Shape& shape = blocks.gradients.shape();
  const DType type = blocks.gradients.dtype();
  if (!gradientsThere.defined())
    gradientsThere = to.isCpu() ? Tensor::pinned(shape, type) : Tensor::empty(shape, type, to);
  copy(blocks.gradients, gradientsThere);
}

}  // namespace muster
