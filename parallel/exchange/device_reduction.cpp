#include "muster/parallel/exchange/device_reduction.h"

#include <algorithm>
#include <numeric>

#include "muster/core/base/error.h"
#include "muster/core/ops/merge.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

constexpr std::size_t kMostMoments = 32;  // replicas whose means and variances a GPU can merge
constexpr std::size_t kMixingBytes = 1 << 24;
constexpr std::int64_t kLeastMixed = 16;  // elements at a time

}  // namespace

DeviceReduction::DeviceReduction(MergePlan& plan, const std::vector<Context*>& contexts,
                                 std::span<const SharedBlock> blocks, std::optional<TransportKind> failing)
    : plan_(plan), failing_(failing), sends_(contexts.size()) {
  const std::size_t groups = contexts.size(), workers = plan.groupOf().size();
  std::size_t mostWorkers = 0;
  for (const auto& group : plan.groups()) mostWorkers = std::max(mostWorkers, group.workers.size());
  sumsTravel_ = groups > 1 && mostWorkers > 1;
  std::int64_t longest = 0, inboxBytes = 0;
  for (const auto& block : blocks) {
    require(block.rule != MergeRule::Moments || groups == 1 || workers <= kMostMoments,
            "exchange: block {} holds means and variances, of which at most {} replicas are merged over "
            "several devices",
            block.name, kMostMoments);
    const std::int64_t elements = block.replicas.front().elements();
    longest = std::max(longest, elements);
    for (int g = 0; g < static_cast<int>(groups); ++g) {
      const auto bytes = static_cast<std::size_t>(plan.owned(g, elements).length()) * sizeof(double);
      inboxBytes = std::max(inboxBytes, static_cast<std::int64_t>(bytes * groups));
      stagingBytes_ = std::max(stagingBytes_, bytes);
    }
  }
  stagingBytes_ = std::max(stagingBytes_, mostWorkers * 2 * kLeastMixed * sizeof(double));
  const std::size_t mixingBytes = std::min(std::max(kMixingBytes, RowMixer::bytesFor(workers, kLeastMixed)),
                                           RowMixer::bytesFor(workers, longest));
  const std::int64_t sumBytes = sumsTravel_ ? longest * static_cast<std::int64_t>(sizeof(double)) : 0;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto& group = plan.groups()[g];
    Member member{{group.workers.begin(), group.workers.end()}, contexts[g], {}, {}, {}, RowMixer(workers)};
    member.mixing = Tensor::empty({static_cast<std::int64_t>(mixingBytes)}, DType::UInt8, group.device);
    if (groups > 1) {
      member.sums = Tensor::empty({sumBytes}, DType::UInt8, group.device);
      member.inbox = Tensor::empty({inboxBytes}, DType::UInt8, group.device);
    }
    members_.push_back(std::move(member));
  }
  transfers_.reserve(2 * groups * workers);
}

void DeviceReduction::connect() {
  transport_ = {};
  if (members_.size() == 1) return;
  std::vector<Context*> contexts;
  for (const auto& member : members_) contexts.push_back(member.context);
  transport_ = makeTransport(plan_.transport(), contexts, stagingBytes_, failing_);
  plan_.setTransport(transport_.kind);
}

void DeviceReduction::mean(std::span<const Tensor> tensors, std::span<const double> weights, double keep,
                           Slice slice, std::span<const Tensor> into) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t length = slice.length();
  const bool alone = members_.size() == 1;
  if (sumsTravel_ || alone)
    for (auto& member : members_) {
      terms_.clear();
      for (const std::size_t w : member.workers)
        if (weights[w] > 0) terms_.push_back({(1 - keep) * (weights[w] / total), part(tensors[w], slice)});
      if (alone && keep > 0) terms_.push_back({keep, part(into[member.workers.front()], slice)});
      const Tensor sums =
          alone ? part(into[member.workers.front()], slice) : viewAt(member.sums, 0, length, DType::Float64);
      atElement(slice.begin, "mean", [&] { linearCombination(terms_, sums, 0, length, *member.context); });
    }
  if (alone) return;
  const DType type = sumsTravel_ ? DType::Float64 : tensors.front().dtype();
  const auto sent = [&](const Member& member, Slice own) {
    return sumsTravel_
               ? viewAt(member.sums, own.begin, own.length(), type)
               : part(tensors[member.workers.front()], {slice.begin + own.begin, slice.begin + own.end});
  };
  transfers_.clear();  // all rounds in one call: each call of NCCL is waited for until it has begun
  for (int round = 0; round < plan_.rounds(); ++round) {
    plan_.scatter(round, length, sends_);
    for (const auto& [from, to, own] : sends_)
      if (own.length() > 0)
        transfers_.push_back({from, to, sent(members_[at(from)], own),
                              viewAt(members_[at(to)].inbox, from * own.length(), own.length(), type)});
  }
  transport_.copies->run(transfers_);
  for (std::size_t g = 0; g < members_.size(); ++g) {
    const Slice own = plan_.owned(static_cast<int>(g), length);
    if (own.length() == 0) continue;
    terms_.clear();
    for (std::size_t h = 0; h < members_.size(); ++h) {
      double weight = 0;
      for (const std::size_t w : members_[h].workers) weight += weights[w];
      if (weight == 0) continue;
      const auto from = static_cast<std::int64_t>(h) * own.length();
      terms_.push_back(
          {sumsTravel_ ? 1 : (1 - keep) * (weight / total),
           g == h ? sent(members_[g], own) : viewAt(members_[g].inbox, from, own.length(), type)});
    }
    const std::int64_t begin = slice.begin + own.begin;
    const Tensor result = part(into[members_[g].workers.front()], {begin, slice.begin + own.end});
    if (keep > 0) terms_.push_back({keep, result});
    atElement(begin, "mean",
              [&] { linearCombination(terms_, result, 0, own.length(), *members_[g].context); });
  }
  gather(slice, into);
}

/// Sends every member's slice of `into` to all others.
void DeviceReduction::gather(Slice slice, std::span<const Tensor> into) {
  transfers_.clear();
  for (int round = 0; round < plan_.rounds(); ++round) {
    plan_.gather(round, slice.length(), sends_);
    for (const auto& [from, to, own] : sends_) {
      const Slice where{slice.begin + own.begin, slice.begin + own.end};
      if (own.length() > 0)
        transfers_.push_back({from, to, part(into[members_[at(from)].workers.front()], where),
                              part(into[members_[at(to)].workers.front()], where)});
    }
  }
  transport_.copies->run(transfers_);
}

std::int64_t DeviceReduction::mixedAtATime(const SharedBlock& block) const {
  const std::int64_t inScratch = RowMixer::elementsAtATime(block, members_.front().mixing.bytes());
  if (members_.size() == 1) return inScratch;
  std::size_t mostWorkers = 0;
  for (const auto& member : members_) mostWorkers = std::max(mostWorkers, member.workers.size());
  const std::size_t parts = block.rule == MergeRule::Moments ? 2 : 1;
  const auto staged = stagingBytes_ / (mostWorkers * parts * sizeOf(block.replicas.front().dtype()));
  return std::min(inScratch, static_cast<std::int64_t>(staged));
}

void DeviceReduction::mix(const SharedBlock& block, const Mixing& mixing) {
  const bool merged = !mixing.merged().empty() && block.hasMergedCopy();
  const bool ofMoments = block.rule == MergeRule::Moments;
  if (merged && !ofMoments)
    mean(block.replicas, mixing.merged(), 0, {0, block.mergedCopy().elements()}, block.mergedCopies);
  const auto needs = [&](const Member& member, std::size_t w) {
    return (merged && ofMoments) || reads(member, mixing, w);
  };
  inPieces(block, needs, [&](Member& member) {
    if (merged && ofMoments)
      member.mixer.merge(mixing.merged(), 0, block.mergedCopies[member.workers.front()]);
    member.mixer.mix(mixing, member.workers);
  });
}

void DeviceReduction::mergeMoments(const SharedBlock& block, std::span<const double> weights, double keep) {
  const auto counts = [&](const Member&, std::size_t w) { return weights[w] > 0; };
  inPieces(block, counts, [&](Member& member) {
    member.mixer.merge(weights, keep, block.mergedCopies[member.workers.front()]);
  });
}

template <typename Needs, typename Form>
void DeviceReduction::inPieces(const SharedBlock& block, Needs needs, Form form) {
  const std::int64_t elements =
      block.replicas.front().elements() / (block.rule == MergeRule::Moments ? 2 : 1);
  const std::int64_t step = elements > 0 ? mixedAtATime(block) : 1;
  for (std::int64_t begin = 0; begin < elements; begin += step) {
    const Slice slice{begin, std::min(elements, begin + step)};
    transfers_.clear();
    for (std::size_t g = 0; g < members_.size(); ++g) {
      members_[g].mixer.begin(block, slice, members_[g].mixing, *members_[g].context);
      for (std::size_t w = 0; w < block.replicas.size(); ++w)
        if (needs(members_[g], w)) bring(block, slice, w, g);
    }
    if (!transfers_.empty()) transport_.copies->run(transfers_);
    for (auto& member : members_) form(member);
  }
}

/// Lets the member read a slice of a replica in place, or adds its transfer to the member.
void DeviceReduction::bring(const SharedBlock& block, Slice slice, std::size_t worker, std::size_t member) {
  const int from = plan_.groupOf()[worker], to = static_cast<int>(member);
  if (from == to) return members_[member].mixer.read(worker);
  const int parts = block.rule == MergeRule::Moments ? 2 : 1;
  const std::int64_t elements = block.replicas[worker].elements() / parts;
  for (int p = 0; p < parts; ++p)
    transfers_.push_back({from, to, part(block.replicas[worker], inPart(slice, p, elements)),
                          members_[member].mixer.inbox(worker, p)});
}

}  // namespace muster
