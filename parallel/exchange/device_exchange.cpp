#include "muster/parallel/exchange/device_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/ops/merge.h"

namespace muster {
namespace {

std::vector<Context*> contextsOf(auto& groups) {
  std::vector<Context*> contexts;
  for (const auto& group : groups) contexts.push_back(group.context.get());
  return contexts;
}

}  // namespace

DeviceExchange::Group::Group(const DeviceGroup& where)
    : workers(where.workers.begin(), where.workers.end()),
      context(std::make_unique<Context>(where.device, ContextOptions{.layers = false})),
      merged(*context),
      distances(
          Tensor::empty({static_cast<std::int64_t>(workers.size()) + 1}, DType::Float64, where.device)) {}

DeviceExchange::DeviceExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
                               MergePlan plan, std::vector<Tensor> refused,
                               std::optional<TransportKind> failing)
    : Exchange({.participants = static_cast<int>(plan.groupOf().size()),
                .senders = static_cast<int>(plan.groupOf().size()),
                .onePlace = plan.groups().size() == 1,
                .checksResults = false},
               sharedBlocks(states, updaterState, plan.groupOf())),
      plan_(std::move(plan)),
      groups_(plan_.groups().begin(), plan_.groups().end()),
      reduction_(plan_, contextsOf(groups_), blocks_, failing),
      alone_(plan_.groupOf().size()),
      refused_(std::move(refused)) {
  // Not guarded: Reset, which always writes zeros, and merges over devices, whose sums form in several
  // places.
  const auto unguarded = [](const SharedBlock& block) {
    return block.hasMergedCopy() && block.rule == MergeRule::Reset;
  };
  const bool several = groups_.size() > 1, resets = std::ranges::any_of(blocks_, unguarded);
  const bool guardable = !refused_.empty() && std::ranges::all_of(refused_, &Tensor::defined);
  if (guardable && (several || resets))
    log(LogLevel::Debug,
        fmt::format("merges wait for the scores of the steps before them: {}",
                    several ? "the workers are on several devices" : "they set the updater's state to zero"));
  if (!guardable || several || resets) refused_.clear();
  topology_.guardsMerges = !refused_.empty();
  for (const int g : plan_.groupOf()) arrivals_.emplace_back(*groups_[at(g)].context);
  status_.aborted = true;
  restart();
}

void DeviceExchange::restart() {
  if (status_.aborted) reduction_.connect();
  status_.aborted = status_.broken = false;
  status_.whole = true;
  if (undo_) undo_->restart();
  if (refused_.empty()) return;
  for (Tensor& refused : refused_) muster::setZero(refused, *groups_.front().context);
  groups_.front().context->synchronize();  // the replicas' next steps write these flags
}

void DeviceExchange::abort() noexcept {
  // Copies end by themselves, but NCCL's transfers wait for all devices, one of which may be lost.
  if (!reduction_.waitsForAll()) return;
  if (!status_.aborted.exchange(true)) try {
      if (!status_.whole || !groups_.front().merged.complete()) status_.broken = true;
      if (undo_) undo_->noteAbort();
    } catch (...) {  // the device is lost
      status_.broken = true;
      if (undo_) undo_->lose();
    }
  reduction_.abort();
}

void DeviceExchange::arrive(int participant, Context& context) {
  arrivals_[at(participant)].record(context);
}

void DeviceExchange::begin(int participant) {
  if (participant != 0) return;
  status_.whole = false;
  for (const auto& group : groups_)
    for (const std::size_t w : group.workers) arrivals_[w].waitOn(*group.context);
}

void DeviceExchange::end(int participant) {
  if (participant != 0) return;
  if (undo_) undo_->check();
  for (auto& group : groups_) group.merged.record(*group.context);
  status_.whole = true;
}

void DeviceExchange::enqueueAfter(int participant, Context& context) {
  groups_[at(plan_.groupOf()[at(participant)])].merged.waitOn(context);
}

void DeviceExchange::wait() {
  for (const auto& arrival : arrivals_) arrival.wait();
  for (const auto& group : groups_) group.merged.wait();
  if (undo_) undo_->wait();
  // No event was recorded after the work that a failed merge has enqueued.
  if (!status_.whole)
    for (const auto& group : groups_) group.context->synchronize();
}

/// If NCCL connects the devices, an abort may leave a merge half done whose operations have all returned.
std::unique_ptr<MergeUndo> DeviceExchange::makeUndo(MergeUndo::Options options) {
  options.everyMerge =
      options.everyMerge || (options.allState && (options.mayOverflow || reduction_.waitsForAll()));
  const Group& first = groups_.front();
  auto undo = std::make_unique<DeviceUndo>(*this, options, status_, *first.context, first.merged);
  undo_ = undo.get();
  return undo;
}

void DeviceExchange::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                           Context&, Spread* spread) {
  if (participant != 0) return;
  groups_.size() == 1 ? mergeOnOneDevice(block, weights, spread) : mergeAcrossDevices(block, weights, spread);
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
