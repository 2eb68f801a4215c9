#include "muster/parallel/data_parallel/replica.h"

#include <algorithm>

#include "muster/core/ops/accumulate.h"
#include "muster/parallel/exchange/tensor_parts.h"

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

Replica::Replica(int index, const Placement& placement, int threads, PeerSums& sums)
    : peers(sums, index), thread("replica", index, placement, threads) {}

void Replica::load(const ModelBlocks& users, bool train) {
  if (stale)
    for (std::size_t b = 0; b < users.state.size(); ++b) copy(users.state[b], blocks.state[b]);
  else if (statisticsMoved)
    for (std::size_t b = 0; b < users.statistics.size(); ++b) copy(users.statistics[b], blocks.statistics[b]);
  stale = false;
  statisticsMoved = train;
}

void Replica::bringGradients(Device to) {
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

void runOnAll(Replicas replicas, std::string_view problem, const std::function<void(Replica&)>& task) {
  std::vector<ReplicaThread*> threads;
  for (const auto& replica : replicas) threads.push_back(&replica->thread);
  runOnAll(threads, problem,
           [&](ReplicaThread& thread) { task(*replicas[static_cast<std::size_t>(thread.index())]); });
}

void joinShards(Replicas replicas, int dim, Tensor Replica::*shard, Part Replica::*part,
                std::string_view what, Tensor& whole) {
  const Tensor& first = (*replicas[0]).*shard;
  std::int64_t size = 0;
  for (const auto& replica : replicas) {
    const Tensor& own = (*replica).*shard;
    if (!own.defined() || own.layout() != Layout::RowMajor || own.shape().rank() <= dim)
      throw InvalidArgument(
          fmt::format("data parallel: the {} of {} is {}; it must be row-major and have a dimension {}", what,
                      replica->thread.name(), own.toString(), dim));
    if (own.dtype() != first.dtype() || withSize(own.shape(), dim, 0) != withSize(first.shape(), dim, 0))
      throw InvalidArgument(
          fmt::format("data parallel: the {} of {} is {}, that of replica 0 {}; they cannot be concatenated "
                      "along dimension {}",
                      what, replica->thread.name(), own.toString(), first.toString(), dim));
    (*replica).*part = {size, own.shape()[dim]};
    size += own.shape()[dim];
  }
  whole.resize(withSize(first.shape(), dim, size), first.dtype());
}

void addGradients(Replicas replicas, Tensor& total, Context& context) {
  constexpr std::string_view problem = "failed in adding up the gradients";
  const bool onCpu = total.device().isCpu();
  const auto isOnCpu = [](const auto& replica) { return replica->thread.placement().device.isCpu(); };
  if (!onCpu || !std::ranges::all_of(replicas, isOnCpu)) {
    runOnAll(replicas, problem, [&](Replica& replica) { replica.bringGradients(total.device()); });
    context.synchronize();
  }
  std::vector<Tensor> terms{total};
  for (const auto& replica : replicas) terms.push_back(replica->gradientsThere);
  if (!onCpu) {
    sum(terms, total, context);
    return context.synchronize();
  }
  runOnAll(replicas, problem, [&](Replica& replica) {
    const auto replicaCount = static_cast<int>(replicas.size());
    const Slice slice = sliceOf(total.elements(), replica.thread.index(), replicaCount);
    if (slice.length() == 0) return;
    std::vector<Tensor> parts;
    for (const Tensor& term : terms) parts.push_back(part(term, slice));
    Tensor own = parts.front();
    const ContextScope scope(replica.thread.context());
    sum(parts, own, replica.thread.context());
  });
}

}  // namespace muster
