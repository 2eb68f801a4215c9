#include "muster/parallel/exchange/device_exchange.h"

#include <algorithm>
#include <numeric>

#include "muster/core/base/error.h"
#include "muster/core/ops/merge.h"

namespace muster {
namespace {

constexpr std::size_t kMostMoments = 32;  // replicas whose means and variances one GPU merges

int partsOf(MergeRule rule) {
  return rule == MergeRule::Moments ? 2 : 1;  // means and variances
}

/// A view of elements in a buffer of bytes.
Tensor viewAt(const Tensor& bytes, std::int64_t offset, std::int64_t elements, DType type) {
  auto* const place = static_cast<std::byte*>(bytes.raw()) + offset * static_cast<std::int64_t>(sizeOf(type));
  return Tensor::view(place, {elements}, type, bytes.device());
}

Tensor part(const Tensor& block, Slice slice) {
  return block.slice(slice.begin, {slice.length()});
}

/// Elements of a block's slice in part `p`: means come first, then variances.
Slice inPart(Slice slice, int p, std::int64_t elements) {
  return {p * elements + slice.begin, p * elements + slice.end};
}

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

DeviceExchange::Group::Group(const DeviceGroup& where, std::size_t groups, std::int64_t sumBytes,
                             std::int64_t inboxBytes)
    : workers(where.workers.begin(), where.workers.end()),
      context(std::make_unique<Context>(where.device, ContextOptions{.layers = false})),
      merged(*context),
      distances(
          Tensor::empty({static_cast<std::int64_t>(workers.size()) + 1}, DType::Float64, where.device)) {
  if (groups == 1) return;
  sums = Tensor::empty({sumBytes}, DType::UInt8, where.device);
  inbox = Tensor::empty({inboxBytes}, DType::UInt8, where.device);
}

DeviceExchange::DeviceExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
                               MergePlan plan, std::optional<Route> failing)
    : failing_(failing),
      plan_(std::move(plan)),
      blocks_(sharedBlocks(states, updaterState, plan_.groupOf())),
      sends_(plan_.groups().size()) {
  const auto groups = plan_.groups().size();
  std::size_t mostWorkers = 0;
  for (const auto& group : plan_.groups()) mostWorkers = std::max(mostWorkers, group.workers.size());
  sumsTravel_ = groups > 1 && mostWorkers > 1;
  std::int64_t longest = 0, inboxBytes = 0;
  for (const auto& block : blocks_) {
    const bool moments = block.rule == MergeRule::Moments;
    require(!moments || groups == 1 || states.size() <= kMostMoments,
            "exchange: block {} holds means and variances, of which at most {} replicas are merged over "
            "several devices",
            block.name, kMostMoments);
    const std::int64_t elements = block.replicas.front().elements() / partsOf(block.rule);
    longest = std::max(longest, elements);
    for (int g = 0; g < static_cast<int>(groups); ++g) {
      const auto bytes = static_cast<std::size_t>(plan_.owned(g, elements).length()) * sizeof(double);
      const std::size_t senders = moments ? 2 * states.size() : groups;
      inboxBytes = std::max(inboxBytes, static_cast<std::int64_t>(bytes * senders));
      stagingBytes_ = std::max(stagingBytes_, bytes * (moments ? 2 * mostWorkers : 1));
    }
  }
  const std::int64_t sumBytes = sumsTravel_ ? longest * static_cast<std::int64_t>(sizeof(double)) : 0;
  for (const auto& group : plan_.groups()) groups_.emplace_back(group, groups, sumBytes, inboxBytes);
  for (const int g : plan_.groupOf()) arrivals_.emplace_back(*groups_[at(g)].context);
  if (participants() == 1)
    for (const auto& block : blocks_)
      staged_.push_back(block.hasMergedCopy() && block.rule != MergeRule::Keep
                            ? Tensor::zeros(block.mergedCopy().shape(), block.mergedCopy().dtype(),
                                            block.mergedCopy().device())
                            : Tensor());
  aborted_ = true;
  restart();
}

void DeviceExchange::restart() {
  if (aborted_) connect();
  aborted_ = broken_ = false;
  whole_ = true;
}

void DeviceExchange::connect() {
  transport_ = {};
  if (groups_.size() == 1) return;
  std::vector<Context*> contexts;
  for (const auto& group : groups_) contexts.push_back(group.context.get());
  transport_ = makeTransport(plan_.route(), contexts, stagingBytes_, failing_);
  plan_.setRoute(transport_.route);
}

void DeviceExchange::abort() noexcept {
  // Copies end by themselves; what NCCL has begun waits for all devices, and one of them may be lost.
  if (!transport_.copies || transport_.route != Route::Nccl) return;
  try {
    const auto complete = [](const Group& group) { return group.merged.complete(); };
    if (!whole_ || !std::ranges::all_of(groups_, complete)) broken_ = true;
  } catch (...) {  // a device is lost
    broken_ = true;
  }
  aborted_ = true;
  transport_.copies->abort();
}

void DeviceExchange::arrive(int participant, Context& context) {
  arrivals_[at(participant)].record(context);
}

void DeviceExchange::begin(int participant) {
  if (participant != 0) return;
  whole_ = false;
  for (const auto& group : groups_)
    for (const std::size_t w : group.workers) arrivals_[w].waitOn(*group.context);
}

void DeviceExchange::end(int participant) {
  if (participant != 0) return;
  for (auto& group : groups_) group.merged.record(*group.context);
  whole_ = true;
}

void DeviceExchange::follow(int participant, Context& context) {
  groups_[at(plan_.groupOf()[at(participant)])].merged.waitOn(context);
}

void DeviceExchange::wait() {
  for (const auto& arrival : arrivals_) arrival.wait();
  for (const auto& group : groups_) group.merged.wait();
  // No event follows what a failed merge has enqueued after the last `end`.
  if (!whole_)
    for (const auto& group : groups_) group.context->synchronize();
}

bool DeviceExchange::stage(Context& context) {
  for (std::size_t b = 0; b < staged_.size(); ++b) {
    if (!staged_[b].defined()) continue;
    Tensor replica = blocks_[b].replicas.front();
    if (blocks_[b].rule == MergeRule::Reset) muster::setZero(replica, context);
    copy(replica, staged_[b], context);
  }
  return !staged_.empty();
}

void DeviceExchange::takeStaged() {
  for (std::size_t b = 0; b < staged_.size(); ++b)
    if (staged_[b].defined()) std::swap(blocks_[b].mergedCopies.front(), staged_[b]);
}

void DeviceExchange::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                           Context&, Spread* spread) {
  if (participant != 0 || block.rule == MergeRule::Keep) return;
  if (block.rule == MergeRule::Reset) {
    setZero(block.replicas);
    setZero(block.mergedCopies);
  } else if (groups_.size() == 1) {
    mergeOnOneDevice(block, weights, spread);
  } else {
    mergeAcrossDevices(block, weights, spread);
  }
}

void DeviceExchange::mean(int participant, std::span<const Tensor> tensors, std::span<const double> weights,
                          Slice slice, std::span<const Tensor> into, Context&) {
  if (participant == 0) meanAcross(tensors, weights, slice, into);
}

void DeviceExchange::eachShare(int participant, Slice slice, Context&,
                               const std::function<void(const Share&)>& use) {
  if (participant != 0) return;
  for (auto& group : groups_) use({*group.context, group.workers, slice});
}

void DeviceExchange::mergeOnOneDevice(const SharedBlock& block, std::span<const double> weights,
                                      Spread* spread) {
  auto& group = groups_.front();
  Tensor mergedCopy = block.hasMergedCopy() ? block.mergedCopy() : Tensor();
  const std::int64_t elements = block.replicas.front().elements() / partsOf(block.rule);
  if (block.rule == MergeRule::Moments)
    return weightedMoments(block.replicas, weights, mergedCopy, 0, elements, *group.context);
  if (!spread) return weightedMean(block.replicas, weights, mergedCopy, 0, elements, *group.context);
  weightedMean(block.replicas, weights, mergedCopy, 0, elements, group.distances, *group.context);
  group.context->synchronize();
  *spread = spreadOf(copyTo(group.distances, Device::cpu()).span<double>(), weights);
}

void DeviceExchange::mergeAcrossDevices(const SharedBlock& block, std::span<const double> weights,
                                        Spread* spread) {
  const std::span<const Tensor> into = block.hasMergedCopy() ? block.mergedCopies : block.replicas;
  if (block.rule == MergeRule::Moments)
    momentsAcross(block.replicas, weights, into);
  else
    meanAcross(block.replicas, weights, {0, block.replicas.front().elements()}, into);
  if (spread) *spread = spreadAbout(into, block.replicas, weights);
  copyToAll(block, into);
}

void DeviceExchange::meanAcross(std::span<const Tensor> tensors, std::span<const double> weights, Slice slice,
                                std::span<const Tensor> into) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t length = slice.length();
  const bool alone = groups_.size() == 1;
  if (sumsTravel_ || alone)
    for (auto& group : groups_) {
      terms_.clear();
      for (const std::size_t w : group.workers)
        if (weights[w] > 0) terms_.push_back({weights[w] / total, part(tensors[w], slice)});
      linearCombination(
          terms_,
          alone ? part(into[group.workers.front()], slice) : viewAt(group.sums, 0, length, DType::Float64), 0,
          length, *group.context);
    }
  if (alone) return;
  const DType type = sumsTravel_ ? DType::Float64 : tensors.front().dtype();
  const auto sent = [&](const Group& group, Slice own) {
    return sumsTravel_
               ? viewAt(group.sums, own.begin, own.length(), type)
               : part(tensors[group.workers.front()], {slice.begin + own.begin, slice.begin + own.end});
  };
  for (int round = 0; round < plan_.rounds(); ++round) {
    transfers_.clear();
    plan_.scatter(round, length, sends_);
    for (const auto& [from, to, own] : sends_)
      if (own.length() > 0)
        transfers_.push_back({from, to, sent(groups_[at(from)], own),
                              viewAt(groups_[at(to)].inbox, from * own.length(), own.length(), type)});
    transport_.copies->run(transfers_);
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Slice own = plan_.owned(static_cast<int>(g), length);
    if (own.length() == 0) continue;
    terms_.clear();
    for (std::size_t h = 0; h < groups_.size(); ++h) {
      double weight = 0;
      for (const std::size_t w : groups_[h].workers) weight += weights[w];
      if (weight == 0) continue;
      const auto from = static_cast<std::int64_t>(h) * own.length();
      terms_.push_back({sumsTravel_ ? 1 : weight / total,
                        g == h ? sent(groups_[g], own) : viewAt(groups_[g].inbox, from, own.length(), type)});
    }
    const Tensor result =
        part(into[groups_[g].workers.front()], {slice.begin + own.begin, slice.begin + own.end});
    linearCombination(terms_, result, 0, own.length(), *groups_[g].context);
  }
  gatherSlices(slice, 1, into);
}

void DeviceExchange::momentsAcross(std::span<const Tensor> tensors, std::span<const double> weights,
                                   std::span<const Tensor> into) {
  const std::int64_t elements = tensors.front().elements() / 2;
  const DType type = tensors.front().dtype();
  const auto inInbox = [&](const Group& group, std::size_t worker, int p, std::int64_t length,
                           int parts = 1) {
    const auto offset = (2 * static_cast<std::int64_t>(worker) + p) * length;
    return viewAt(group.inbox, offset, parts * length, type);
  };
  for (int round = 0; round < plan_.rounds(); ++round) {
    transfers_.clear();
    plan_.scatter(round, elements, sends_);
    for (const auto& [from, to, slice] : sends_)
      for (const std::size_t w : groups_[at(from)].workers)
        for (int p = 0; p < 2 && slice.length() > 0; ++p)
          transfers_.push_back({from, to, part(tensors[w], inPart(slice, p, elements)),
                                inInbox(groups_[at(to)], w, p, slice.length())});
    transport_.copies->run(transfers_);
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& group = groups_[g];
    const Slice slice = plan_.owned(static_cast<int>(g), elements);
    if (slice.length() == 0) continue;
    for (const std::size_t w : group.workers)
      for (int p = 0; p < 2; ++p) {
        Tensor own = inInbox(group, w, p, slice.length());
        copy(part(tensors[w], inPart(slice, p, elements)), own, *group.context);
      }
    group.replicas.clear();
    for (std::size_t w = 0; w < tensors.size(); ++w)
      group.replicas.push_back(inInbox(group, w, 0, slice.length(), 2));
    Tensor none;
    weightedMoments(group.replicas, weights, none, 0, slice.length(), *group.context);
    for (int p = 0; p < 2; ++p) {
      Tensor result = part(into[group.workers.front()], inPart(slice, p, elements));
      copy(inInbox(group, 0, p, slice.length()), result, *group.context);
    }
  }
  gatherSlices({0, elements}, 2, into);
}

void DeviceExchange::gatherSlices(Slice slice, int parts, std::span<const Tensor> into) {
  for (int round = 0; round < plan_.rounds(); ++round) {
    transfers_.clear();
    plan_.gather(round, slice.length(), sends_);
    for (const auto& [from, to, own] : sends_)
      for (int p = 0; p < parts && own.length() > 0; ++p) {
        const Slice where = inPart({slice.begin + own.begin, slice.begin + own.end}, p, slice.length());
        transfers_.push_back({from, to, part(into[groups_[at(from)].workers.front()], where),
                              part(into[groups_[at(to)].workers.front()], where)});
      }
    transport_.copies->run(transfers_);
  }
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

void DeviceExchange::setZero(std::span<const Tensor> tensors) {
  if (tensors.empty()) return;
  for (auto& group : groups_)
    for (const std::size_t w : group.workers) {
      Tensor tensor = tensors[w];
      muster::setZero(tensor, *group.context);
    }
}

}  // namespace muster
