#include "muster/parallel/exchange/device_exchange.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "muster/core/base/error.h"
#include "muster/core/ops/merge.h"

namespace muster {
namespace {

int partsOf(MergeRule rule) {
  return rule == MergeRule::Moments ? 2 : 1;  // means and variances
}

std::int64_t lengthOf(Slice slice) {
  return slice.end - slice.begin;
}

/// The most that one group gets of a block.
std::int64_t largestSliceBytes(const SharedBlock& block, const MergePlan& plan) {
  const Tensor& values = block.replicas.front();
  const int parts = partsOf(block.rule);
  std::int64_t most = 0;
  for (int g = 0; g < static_cast<int>(plan.groups().size()); ++g)
    most = std::max(most, lengthOf(plan.owned(g, values.elements() / parts)));
  return most * parts * static_cast<std::int64_t>(sizeOf(values.dtype()));
}

/// Elements at a place in memory that somebody else owns.
Tensor viewAt(const Tensor& bytes, std::int64_t offset, std::int64_t elements, DType type) {
  auto* const place = static_cast<std::byte*>(bytes.raw()) + offset * static_cast<std::int64_t>(sizeOf(type));
  return Tensor::view(place, {elements}, type, bytes.device());
}

/// As a vector of elements.
Tensor flat(const Tensor& block, std::int64_t begin, std::int64_t elements) {
  return block.slice(begin, {elements});
}

}  // namespace

DeviceExchange::Group::Group(const DeviceGroup& where, std::size_t groups, std::int64_t inboxBytes)
    : workers(where.workers.begin(), where.workers.end()),
      context(std::make_unique<Context>(where.device, ContextOptions{.layers = false})),
      merged(*context),
      distances(Tensor::empty({static_cast<std::int64_t>(std::max(workers.size(), groups)) + 1},
                              DType::Float64, where.device)) {
  if (groups == 1) return;
  for (std::size_t from = 0; from < groups; ++from)
    inboxes.push_back(Tensor::empty({inboxBytes}, DType::UInt8, where.device));
}

DeviceExchange::DeviceExchange(const std::vector<std::vector<StateBlock*>>& states, bool averageUpdaters,
                               MergePlan plan, std::optional<Route> failing)
    : failing_(failing),
      plan_(std::move(plan)),
      blocks_(sharedBlocks(states, averageUpdaters, plan_.groupOf())),
      groupWeights_(plan_.groups().size()),
      sends_(plan_.groups().size()) {
  for (const auto& block : blocks_) inboxBytes_ = std::max(inboxBytes_, largestSliceBytes(block, plan_));
  for (const auto& group : plan_.groups()) groups_.emplace_back(group, plan_.groups().size(), inboxBytes_);
  for (const int g : plan_.groupOf()) arrivals_.emplace_back(*groups_[static_cast<std::size_t>(g)].context);
  if (participants() == 1)
    for (const auto& block : blocks_)
      staged_.push_back(block.shadow.defined() && block.rule != MergeRule::Keep
                            ? Tensor::zeros(block.shadow.shape(), block.shadow.dtype(), block.shadow.device())
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
  if (groups_.size() > 1) {
    std::vector<Context*> contexts;
    for (const auto& group : groups_) contexts.push_back(group.context.get());
    transport_ = makeTransport(plan_.route(), contexts, static_cast<std::size_t>(inboxBytes_), failing_);
    plan_.setRoute(transport_.route);
  }
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
  arrivals_[static_cast<std::size_t>(participant)].record(context);
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
  const int group = plan_.groupOf()[static_cast<std::size_t>(participant)];
  groups_[static_cast<std::size_t>(group)].merged.waitOn(context);
}

void DeviceExchange::wait() {
  for (const auto& arrival : arrivals_) arrival.wait();
  for (const auto& group : groups_) group.merged.wait();
  // What was enqueued behind the last `end` by a merge that failed has no event.
  if (!whole_)
    for (const auto& group : groups_) group.context->synchronize();
}

bool DeviceExchange::stage(Context& context) {
  for (std::size_t b = 0; b < staged_.size(); ++b) {
    if (!staged_[b].defined()) continue;
    Tensor replica = blocks_[b].replicas.front();
    if (blocks_[b].rule == MergeRule::Reset) setZero(replica, context);
    copy(replica, staged_[b], context);
  }
  return !staged_.empty();
}

void DeviceExchange::takeStaged() {
  for (std::size_t b = 0; b < staged_.size(); ++b) {
    if (!staged_[b].defined()) continue;
    std::swap(blocks_[b].shadow, staged_[b]);
    blocks_[b].shadows.front() = blocks_[b].shadow;
  }
}

std::int64_t DeviceExchange::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                                   Context&, Spread* spread) {
  if (spread) *spread = {};
  if (participant == 0) {
    if (block.rule == MergeRule::Reset) {
      setZeroEverywhere(block.replicas);
      if (block.shadow.defined()) setZeroEverywhere(block.shadows);
    } else if (block.rule != MergeRule::Keep) {
      setWeights(weights);
      reduce(block.replicas, block.rule, block.shadows, spread);
      if (groups_.size() > 1) copyToOthers(block);
    }
  }
  return bytesToMerge(block, static_cast<std::size_t>(participant), weights);
}

std::int64_t DeviceExchange::addEncoded(int participant, const SharedBlock& block,
                                        std::span<const ThresholdMessage* const> messages,
                                        std::span<const double> weights, Context&) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (auto& group : groups_) {
    if (participant != 0) break;
    Tensor shadow = block.shadows[group.workers.front()];
    for (std::size_t w = 0; w < messages.size(); ++w)
      if (weights[w] > 0)
        addDecoded(*messages[w], static_cast<float>(weights[w] / total), 0, shadow.elements(), shadow,
                   *group.context);
    copyFromShadow(block, group);
  }
  const auto own = static_cast<std::size_t>(participant);
  return weights[own] > 0 ? messages[own]->bytes() : 0;
}

std::int64_t DeviceExchange::addDense(int participant, const SharedBlock& block,
                                      std::span<const Tensor> vectors, std::span<const double> weights,
                                      Context&, Spread& spread) {
  spread = {};
  if (participant == 0) {
    const bool several = groups_.size() > 1;
    setWeights(weights);
    if (several) reduce(vectors, MergeRule::Average, {}, nullptr);
    for (auto& group : groups_) {
      const std::size_t first = group.workers.front();
      Tensor shadow = block.shadows[first];
      // Of several devices each has the mean already.
      const auto added = several ? vectors.subspan(first, 1) : vectors;
      const auto shares = several ? std::span<const double>(kWhole) : weights;
      const Spread own = addWeightedMean(added, shares, 0, shadow.elements(), shadow, *group.context);
      if (&group == &groups_.front()) spread = own;
      copyFromShadow(block, group);
    }
    setZeroEverywhere(vectors);
  }
  const auto own = static_cast<std::size_t>(participant);
  return weights[own] > 0 ? static_cast<std::int64_t>(vectors[own].bytes()) : 0;
}

void DeviceExchange::setWeights(std::span<const double> weights) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& group = groups_[g];
    group.weights.clear();
    for (const std::size_t w : group.workers) group.weights.push_back(weights[w]);
    groupWeights_[g] = std::accumulate(group.weights.begin(), group.weights.end(), 0.0);
  }
}

void DeviceExchange::reduce(std::span<const Tensor> tensors, MergeRule rule, std::span<const Tensor> shadows,
                            Spread* spread) {
  const bool alone = groups_.size() == 1;
  const double total = std::accumulate(groupWeights_.begin(), groupWeights_.end(), 0.0);
  const std::int64_t elements = tensors.front().elements() / partsOf(rule);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& group = groups_[g];
    if (!alone && (group.workers.size() == 1 || groupWeights_[g] == 0)) continue;
    group.replicas.clear();
    for (const std::size_t w : group.workers) group.replicas.push_back(tensors[w]);
    const Tensor shadow = alone && !shadows.empty() ? shadows[group.workers.front()] : Tensor();
    const Spread own = apply(rule, group, group.weights, shadow, elements, spread != nullptr);
    if (!spread) continue;
    spread->distance += groupWeights_[g] / total * own.distance;
    if (alone) spread->norm += own.norm;
  }
  if (!alone) reduceAcross(tensors, rule, spread);
}

// The distance of replicas from the mean of all is that from their device's mean and that of this one from
// the mean of all: weighted sums of squares about a mean add up so.
void DeviceExchange::reduceAcross(std::span<const Tensor> tensors, MergeRule rule, Spread* spread) {
  const int parts = partsOf(rule);
  const std::int64_t elements = tensors.front().elements() / parts;
  const auto eachOwnSlice = [&](auto use) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Slice slice = plan_.owned(static_cast<int>(g), elements);
      if (lengthOf(slice) > 0) use(g, groups_[g], slice);
    }
  };
  const auto copyOwn = [&](bool out) {
    eachOwnSlice([&](std::size_t g, Group& group, Slice slice) {
      const Tensor& replica = tensors[group.workers.front()];
      for (int p = 0; p < parts; ++p) {
        Tensor inReplica = flat(replica, p * elements + slice.begin, lengthOf(slice));
        Tensor inInbox = viewAt(group.inboxes[g], p * lengthOf(slice), lengthOf(slice), replica.dtype());
        copy(out ? inReplica : inInbox, out ? inInbox : inReplica, *group.context);
      }
    });
  };
  copyOwn(true);
  exchangeSlices(tensors, parts, true);
  eachOwnSlice([&](std::size_t, Group& group, Slice slice) {
    group.replicas.clear();
    for (const auto& inbox : group.inboxes)
      group.replicas.push_back(viewAt(inbox, 0, parts * lengthOf(slice), tensors.front().dtype()));
    const Spread own = apply(rule, group, groupWeights_, Tensor(), lengthOf(slice), spread != nullptr);
    if (!spread) return;
    spread->distance += own.distance;
    spread->norm += own.norm;
  });
  exchangeSlices(tensors, parts, false);
  copyOwn(false);
}

void DeviceExchange::exchangeSlices(std::span<const Tensor> tensors, int parts, bool scatter) {
  const std::int64_t elements = tensors.front().elements() / parts;
  const DType type = tensors.front().dtype();
  for (int round = 0; round < plan_.rounds(); ++round) {
    transfers_.clear();
    scatter ? plan_.scatter(round, elements, sends_) : plan_.gather(round, elements, sends_);
    for (const auto& [from, to, slice] : sends_) {
      const std::int64_t length = lengthOf(slice);
      if (length == 0) continue;
      const auto& sender = groups_[static_cast<std::size_t>(from)];
      const auto& receiver = groups_[static_cast<std::size_t>(to)];
      const Tensor& inbox = (scatter ? receiver : sender).inboxes[static_cast<std::size_t>(from)];
      const Tensor& replica = tensors[(scatter ? sender : receiver).workers.front()];
      for (int p = 0; p < parts; ++p) {
        const Tensor inReplica = flat(replica, p * elements + slice.begin, length);
        const Tensor inInbox = viewAt(inbox, p * length, length, type);
        transfers_.push_back({from, to, scatter ? inReplica : inInbox, scatter ? inInbox : inReplica});
      }
    }
    transport_.copies->run(transfers_);
  }
}

Spread DeviceExchange::apply(MergeRule rule, Group& group, std::span<const double> weights, Tensor shadow,
                             std::int64_t elements, bool measure) {
  if (rule == MergeRule::Moments) {
    weightedMoments(group.replicas, weights, shadow, 0, elements, *group.context);
    return {};
  }
  if (!measure) {
    weightedMean(group.replicas, weights, shadow, 0, elements, *group.context);
    return {};
  }
  Tensor distances = group.distances.slice(0, {static_cast<std::int64_t>(weights.size()) + 1});
  weightedMean(group.replicas, weights, shadow, 0, elements, distances, *group.context);
  group.context->synchronize();
  return spreadOf(copyTo(distances, Device::cpu()).span<double>(), weights);
}

void DeviceExchange::copyToOthers(const SharedBlock& block) {
  for (auto& group : groups_) {
    const Tensor& merged = block.replicas[group.workers.front()];
    for (const std::size_t w : std::span(group.workers).subspan(1)) {
      Tensor replica = block.replicas[w];
      copy(merged, replica, *group.context);
    }
    if (!block.shadow.defined()) continue;
    Tensor shadow = block.shadows[group.workers.front()];
    copy(merged, shadow, *group.context);
  }
}

void DeviceExchange::copyFromShadow(const SharedBlock& block, Group& group) {
  for (const std::size_t w : group.workers) {
    Tensor replica = block.replicas[w];
    copy(block.shadows[w], replica, *group.context);
  }
}

void DeviceExchange::setZeroEverywhere(std::span<const Tensor> tensors) {
  for (auto& group : groups_)
    for (const std::size_t w : group.workers) {
      Tensor tensor = tensors[w];
      setZero(tensor, *group.context);
    }
}

}  // namespace muster
