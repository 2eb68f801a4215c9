#include "muster/parallel/exchange/device_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "muster/core/base/log.h"

namespace muster {

DeviceExchange::DeviceExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
                               MergePlan plan, std::vector<Tensor> refused,
                               std::optional<TransportKind> failing)
    : Exchange({.participants = static_cast<int>(plan.groupOf().size()),
                .senders = static_cast<int>(plan.groupOf().size()),
                .onePlace = plan.groups().size() == 1,
                .checksResults = false},
               sharedBlocks(states, updaterState, plan.groupOf())),
      plan_(std::move(plan)),
      reduction_(plan_, blocks_, failing),
      devices_(reduction_.members()),
      alone_(plan_.groupOf().size()),
      refused_(std::move(refused)) {
  // Not guarded: Reset, which always writes zeros, and merges over devices, whose sums form in several
  // places.
  const auto unguarded = [](const SharedBlock& block) {
    return block.hasMergedCopy() && block.rule == MergeRule::Reset;
  };
  const bool several = devices_.size() > 1, resets = std::ranges::any_of(blocks_, unguarded);
  const bool guardable = !refused_.empty() && std::ranges::all_of(refused_, &Tensor::defined);
  if (guardable && (several || resets))
    log(LogLevel::Debug,
        fmt::format("merges wait for the scores of the steps before them: {}",
                    several ? "the workers are on several devices" : "they set the updater's state to zero"));
  if (!guardable || several || resets) refused_.clear();
  topology_.guardsMerges = !refused_.empty();
  for (const std::size_t g : plan_.groupOf()) arrivals_.emplace_back(*devices_[g].context);
  restart();
}

void DeviceExchange::restart() {
  if (aborted_) reduction_.connect();
  aborted_ = broken_ = false;
  whole_ = true;
  if (undo_) undo_->restart();
  if (refused_.empty()) return;
  for (Tensor& refused : refused_) muster::setZero(refused, *devices_.front().context);
  devices_.front().context->synchronize();  // the replicas' next steps write these flags
}

void DeviceExchange::abort() noexcept {
  // Copies end by themselves, but NCCL's transfers wait for all devices, one of which may be lost.
  if (!reduction_.waitsForAll()) return;
  if (!aborted_.exchange(true)) try {
      if (!whole_ || !devices_.front().merged.complete()) broken_ = true;
      if (undo_) undo_->keptWhole_ = !undo_->keeping_ && undo_->kept_.complete();
    } catch (...) {  // the device is lost
      broken_ = true;
      if (undo_) undo_->keptWhole_ = false;
    }
  reduction_.abort();
}

void DeviceExchange::begin(int participant) {
  if (participant != 0) return;
  whole_ = false;
  for (const Member& device : devices_)
    for (const std::size_t w : device.workers) arrivals_[w].waitOn(*device.context);
}

void DeviceExchange::end(int participant) {
  if (participant != 0) return;
  if (undo_) undo_->check();
  for (Member& device : devices_) device.merged.record(*device.context);
  whole_ = true;
}

void DeviceExchange::wait() {
  for (const auto& arrival : arrivals_) arrival.wait();
  for (const Member& device : devices_) device.merged.wait();
  if (undo_) undo_->kept_.wait();
  // No event was recorded after the work that a failed merge has enqueued.
  if (!whole_)
    for (const Member& device : devices_) device.context->synchronize();
}

/// If NCCL connects the devices, an abort may leave a merge half done whose operations have all returned.
std::unique_ptr<MergeUndo> DeviceExchange::makeUndo(MergeUndo::Options options) {
  options.everyMerge =
      options.everyMerge || (options.allState && (options.mayOverflow || reduction_.waitsForAll()));
  auto undo = std::make_unique<Undo>(*this, options);
  undo_ = undo.get();
  return undo;
}

void DeviceExchange::eachShare(int participant, std::int64_t, Slice slice, Context&, const ShareUse& use) {
  if (participant != 0) return;
  for (Member& device : devices_) use({*device.context, device.workers, slice});
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
  Member& device = devices_.front();
  Tensor mergedCopy = block.hasMergedCopy() ? block.mergedCopy() : Tensor();
  const std::int64_t elements = block.replicas.front().elements();
  if (block.rule == MergeRule::Moments)
    return weightedMoments(block.replicas, weights, mergedCopy, 0, elements / 2, *device.context, refused_);
  if (!spread)
    return weightedMean(block.replicas, weights, mergedCopy, 0, elements, *device.context, refused_);
  weightedMean(block.replicas, weights, mergedCopy, 0, elements, device.distances, *device.context);
  device.context->synchronize();
  *spread = spreadOf(copyTo(device.distances, Device::cpu()).span<double>(), weights);
}

void DeviceExchange::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                           Context&, Spread* spread) {
  if (participant != 0) return;
  if (devices_.size() == 1) return mergeOnOneDevice(block, weights, spread);
  const std::span<const Tensor> into = block.hasMergedCopy() ? block.mergedCopies : block.replicas;
  if (block.rule == MergeRule::Moments)
    reduction_.mergeMoments(block, weights, 0);
  else
    reduction_.mean(block.replicas, weights, 0, {0, block.replicas.front().elements()}, into);
  if (spread) *spread = spreadAbout(into, block.replicas, weights);
  for (Member& device : devices_)
    for (const std::size_t w : device.workers) {
      Tensor replica = block.replicas[w];
      const Tensor& merged = into[device.workers.front()];
      if (replica.raw() != merged.raw()) copy(merged, replica, *device.context);
    }
}

Spread DeviceExchange::spreadAbout(std::span<const Tensor> mean, std::span<const Tensor> replicas,
                                   std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t elements = replicas.front().elements();
  Spread spread;
  for (Member& device : devices_)
    for (const std::size_t w : device.workers)
      if (weights[w] > 0)
        spread.distance +=
            weights[w] / total * squaredDistance(replicas[w], mean[w], 0, elements, *device.context);
  spread.norm = squaredDistance(mean.front(), Tensor(), 0, elements, *devices_.front().context);
  return spread;
}

}  // namespace muster
