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

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

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
    const bool moments = block.rule == MergeRule::Moments;
    require(!moments || groups == 1 || workers <= kMostMoments,
            "exchange: block {} holds means and variances, of which at most {} replicas are merged over "
            "several devices",
            block.name, kMostMoments);
    const std::int64_t elements = block.replicas.front().elements();
    longest = std::max(longest, elements);
    for (int g = 0; g < static_cast<int>(groups); ++g) {
      const auto bytes = static_cast<std::size_t>(plan.owned(g, elements).length()) * sizeof(double);
      inboxBytes =
          std::max(inboxBytes, static_cast<std::int64_t>(bytes * (moments ? 2 * (workers + 1) : groups)));
      stagingBytes_ = std::max(stagingBytes_, bytes * (moments ? 2 * mostWorkers : 1));
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
      linearCombination(
          terms_,
          alone ? part(into[member.workers.front()], slice) : viewAt(member.sums, 0, length, DType::Float64),
          0, length, *member.context);
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
    const Tensor result =
        part(into[members_[g].workers.front()], {slice.begin + own.begin, slice.begin + own.end});
    if (keep > 0) terms_.push_back({keep, result});
    linearCombination(terms_, result, 0, own.length(), *members_[g].context);
  }
  gather(slice, 1, into);
}

void DeviceReduction::mergeMoments(const SharedBlock& block, std::span<const double> weights, double keep) {
  if (members_.size() > 1) return moments(block.replicas, weights, keep, block.mergedCopies);
  auto& [workers, context, sums, inbox, scratch, mixer] = members_.front();
  const std::int64_t elements = block.mergedCopy().elements() / 2;
  const std::int64_t step = elements > 0 ? mixedAtATime(block) : 1;
  for (std::int64_t begin = 0; begin < elements; begin += step) {
    mixer.begin(block, {begin, std::min(elements, begin + step)}, scratch, *context);
    for (const std::size_t w : workers)
      if (weights[w] > 0) mixer.read(w);
    mixer.merge(weights, keep);
  }
}

void DeviceReduction::moments(std::span<const Tensor> tensors, std::span<const double> weights, double keep,
                              std::span<const Tensor> into) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t elements = tensors.front().elements() / 2;
  const DType type = tensors.front().dtype();
  const auto inInbox = [&](const Member& member, std::size_t worker, int p, std::int64_t length,
                           int parts = 1) {
    const auto offset = (2 * static_cast<std::int64_t>(worker) + p) * length;
    return viewAt(member.inbox, offset, parts * length, type);
  };
  transfers_.clear();
  for (int round = 0; round < plan_.rounds(); ++round) {
    plan_.scatter(round, elements, sends_);
    for (const auto& [from, to, slice] : sends_)
      for (const std::size_t w : members_[at(from)].workers)
        for (int p = 0; p < 2 && slice.length() > 0; ++p)
          transfers_.push_back({from, to, part(tensors[w], inPart(slice, p, elements)),
                                inInbox(members_[at(to)], w, p, slice.length())});
  }
  transport_.copies->run(transfers_);
  for (std::size_t g = 0; g < members_.size(); ++g) {
    auto& member = members_[g];
    const Slice slice = plan_.owned(static_cast<int>(g), elements);
    if (slice.length() == 0) continue;
    for (const std::size_t w : member.workers)
      for (int p = 0; p < 2; ++p) {
        Tensor own = inInbox(member, w, p, slice.length());
        copy(part(tensors[w], inPart(slice, p, elements)), own, *member.context);
      }
    replicas_.clear();
    weights_.clear();
    for (std::size_t w = 0; w < tensors.size(); ++w) {
      if (weights[w] == 0) continue;
      replicas_.push_back(inInbox(member, w, 0, slice.length(), 2));
      weights_.push_back(keep > 0 ? (1 - keep) * (weights[w] / total) : weights[w]);
    }
    if (keep > 0) {
      replicas_.push_back(inInbox(member, tensors.size(), 0, slice.length(), 2));
      weights_.push_back(keep);
      for (int p = 0; p < 2; ++p) {
        Tensor before = inInbox(member, tensors.size(), p, slice.length());
        copy(part(into[member.workers.front()], inPart(slice, p, elements)), before, *member.context);
      }
    }
    Tensor none;
    weightedMoments(replicas_, weights_, none, 0, slice.length(), *member.context);
    for (int p = 0; p < 2; ++p) {
      Tensor result = part(into[member.workers.front()], inPart(slice, p, elements));
      copy(part(replicas_.front(), inPart({0, slice.length()}, p, slice.length())), result, *member.context);
    }
  }
  gather({0, elements}, 2, into);
}

void DeviceReduction::gather(Slice slice, int parts, std::span<const Tensor> into) {
  transfers_.clear();
  for (int round = 0; round < plan_.rounds(); ++round) {
    plan_.gather(round, slice.length(), sends_);
    for (const auto& [from, to, own] : sends_)
      for (int p = 0; p < parts && own.length() > 0; ++p) {
        const Slice where = inPart({slice.begin + own.begin, slice.begin + own.end}, p, slice.length());
        transfers_.push_back({from, to, part(into[members_[at(from)].workers.front()], where),
                              part(into[members_[at(to)].workers.front()], where)});
      }
  }
  transport_.copies->run(transfers_);
}

}  // namespace muster
