// The operations of DeviceExchange.
#include <numeric>

#include "muster/core/ops/merge.h"
#include "muster/parallel/exchange/device_exchange.h"

namespace muster {

void DeviceExchange::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                           Context&, Spread* spread) {
  if (participant != 0) return;
  groups_.size() == 1 ? mergeOnOneDevice(block, weights, spread) : mergeAcrossDevices(block, weights, spread);
}

void DeviceExchange::mean(int participant, const SliceMean& mean, Context&) {
  if (participant == 0) reduction_.mean(mean.tensors, mean.weights, mean.keep, mean.slice, mean.into);
}

void DeviceExchange::moments(int participant, const SharedBlock& block, std::span<const double> weights,
                             double keep, Context&) {
  if (participant == 0) reduction_.mergeMoments(block, weights, keep);
}

void DeviceExchange::mix(int participant, const SharedBlock& block, const Mixing& mixing, Context&) {
  if (participant == 0) reduction_.mix(block, mixing);
}

void DeviceExchange::eachShare(int participant, std::int64_t, Slice slice, Context&, ShareUse use) {
  if (participant != 0) return;
  for (auto& group : groups_) use({*group.context, group.workers, slice});
}

/// Copies to every device.
Tensor DeviceExchange::fetch(int participant, std::span<const Tensor> tensors, std::size_t from,
                             std::size_t to, std::span<const Tensor> into, Context&) {
  if (into[from].raw() == into[to].raw()) return tensors[from];
  if (participant == 0) {
    alone_.assign(tensors.size(), 0.0);
    alone_[from] = 1;
    reduction_.mean(tensors, alone_, 0, {0, into[to].elements()}, into);
  }
  return into[to];
}

void DeviceExchange::mergeOnOneDevice(const SharedBlock& block, std::span<const double> weights,
                                      Spread* spread) {
  auto& group = groups_.front();
  Tensor mergedCopy = block.hasMergedCopy() ? block.mergedCopy() : Tensor();
  const std::int64_t elements = block.replicas.front().elements();
  if (block.rule == MergeRule::Moments)
    return weightedMoments(block.replicas, weights, mergedCopy, 0, elements / 2, *group.context, refused_);
  if (!spread)
    return weightedMean(block.replicas, weights, mergedCopy, 0, elements, *group.context, refused_);
  weightedMean(block.replicas, weights, mergedCopy, 0, elements, group.distances, *group.context);
  group.context->synchronize();
  *spread = spreadOf(copyTo(group.distances, Device::cpu()).span<double>(), weights);
}

void DeviceExchange::mergeAcrossDevices(const SharedBlock& block, std::span<const double> weights,
                                        Spread* spread) {
  const std::span<const Tensor> into = block.hasMergedCopy() ? block.mergedCopies : block.replicas;
  if (block.rule == MergeRule::Moments)
    reduction_.mergeMoments(block, weights, 0);
  else
    reduction_.mean(block.replicas, weights, 0, {0, block.replicas.front().elements()}, into);
  if (spread) *spread = spreadAbout(into, block.replicas, weights);
  copyToAll(block, into);
}

Spread DeviceExchange::spreadAbout(std::span<const Tensor> mean, std::span<const Tensor> replicas,
                                   std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t elements = replicas.front().elements();
  Spread spread;
  for (auto& group : groups_)
    for (const std::size_t w : group.workers)
      if (weights[w] > 0)
        spread.distance +=
            weights[w] / total * squaredDistance(replicas[w], mean[w], 0, elements, *group.context);
  spread.norm = squaredDistance(mean.front(), Tensor(), 0, elements, *groups_.front().context);
  return spread;
}

void DeviceExchange::copyToAll(const SharedBlock& block, std::span<const Tensor> merged) {
  for (auto& group : groups_) {
    const Tensor& from = merged[group.workers.front()];
    for (const std::size_t w : group.workers) {
      Tensor replica = block.replicas[w];
      if (replica.raw() != from.raw()) copy(from, replica, *group.context);
    }
  }
}

}  // namespace muster
