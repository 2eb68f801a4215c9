#include "muster/parallel/exchange/device_reduction.h"

#include <algorithm>
#include <numeric>

#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

constexpr std::size_t kMostMoments = 32;  // replicas whose means and variances a GPU can merge
constexpr std::size_t kMixingBytes = 1 << 24;
constexpr std::int64_t kLeastMixed = 16;            // elements at a time
constexpr std::int64_t kSumBytes = sizeof(double);  // of an element

}  // namespace

DeviceReduction::Member::Member(const DeviceGroup& group, std::size_t workersOfAll)
    : workers(group.workers),
      context(std::make_unique<Context>(group.device, ContextOptions{.layers = false})),
      merged(*context),
      distances(Tensor::empty({static_cast<std::int64_t>(workers.size()) + 1}, DType::Float64, group.device)),
      mixer(workersOfAll) {}

DeviceReduction::DeviceReduction(MergePlan& plan, std::span<const SharedBlock> blocks,
                                 std::optional<TransportKind> failing)
    : plan_(plan), failing_(failing) {
  const std::size_t groups = plan.groups().size(), workers = plan.groupOf().size();
  for (const auto& group : plan.groups()) mostWorkers_ = std::max(mostWorkers_, group.workers.size());
  sumsTravel_ = groups > 1 && mostWorkers_ > 1;
  std::int64_t longest = 0, sliceBytes = 0;
  for (const auto& block : blocks) {
    require(block.rule != MergeRule::Moments || groups == 1 || workers <= kMostMoments,
            "exchange: block {} holds means and variances, of which at most {} replicas are merged over "
            "several devices",
            block.name, kMostMoments);
    longest = std::max(longest, block.replicas.front().elements());
  }
  for (std::size_t g = 0; g < groups; ++g)
    sliceBytes = std::max(sliceBytes, plan.owned(g, longest).length() * kSumBytes);
  stagingBytes_ = std::max(static_cast<std::size_t>(sliceBytes),
                           mostWorkers_ * 2 * static_cast<std::size_t>(kLeastMixed * kSumBytes));
  const std::size_t mixingBytes = std::min(std::max(kMixingBytes, RowMixer::bytesFor(workers, kLeastMixed)),
                                           RowMixer::bytesFor(workers, longest));
  for (const auto& group : plan.groups()) {
    const auto bytes = [&](std::int64_t count) { return Tensor::empty({count}, DType::UInt8, group.device); };
    Member& member = members_.emplace_back(group, workers);
    member.mixing = bytes(static_cast<std::int64_t>(mixingBytes));
    if (groups == 1) continue;
    member.sums = bytes(sumsTravel_ ? longest * kSumBytes : 0);
    member.inbox = bytes(sliceBytes * static_cast<std::int64_t>(groups));
  }
  transfers_.reserve(2 * groups * workers);
}

void DeviceReduction::connect() {
  transport_ = {};
  if (members_.size() == 1) return;
  std::vector<Context*> contexts;
  for (const auto& member : members_) contexts.push_back(member.context.get());
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
  const auto ofBlock = [&](std::span<const Tensor> block, const Member& member, Slice own) {
    return part(block[member.workers.front()], {slice.begin + own.begin, slice.begin + own.end});
  };
  const auto sent = [&](const Member& member, Slice own) {
    return sumsTravel_ ? viewAt(member.sums, own.begin, own.length(), type) : ofBlock(tensors, member, own);
  };
  const auto received = [&](std::size_t from, std::size_t to, Slice own) {
    return viewAt(members_[to].inbox, static_cast<std::int64_t>(from) * own.length(), own.length(), type);
  };
  transfers_.clear();  // all in one call: each call of NCCL is waited for until it has begun
  for (const auto& [from, to] : plan_.sends())
    send(from, to, sent(members_[from], plan_.owned(to, length)),
         received(from, to, plan_.owned(to, length)));
  transport_.copies->run(transfers_);
  for (std::size_t g = 0; g < members_.size(); ++g) {
    const Slice own = plan_.owned(g, length);
    if (own.length() == 0) continue;
    terms_.clear();
    for (std::size_t h = 0; h < members_.size(); ++h) {
      double weight = 0;
      for (const std::size_t w : members_[h].workers) weight += weights[w];
      if (weight == 0) continue;
      terms_.push_back({sumsTravel_ ? 1 : (1 - keep) * (weight / total),
                        g == h ? sent(members_[g], own) : received(h, g, own)});
    }
    const Tensor result = ofBlock(into, members_[g], own);
    if (keep > 0) terms_.push_back({keep, result});
    atElement(slice.begin + own.begin, "mean",
              [&] { linearCombination(terms_, result, 0, own.length(), *members_[g].context); });
  }
  transfers_.clear();
  for (const auto& [from, to] : plan_.sends())
    send(from, to, ofBlock(into, members_[from], plan_.owned(from, length)),
         ofBlock(into, members_[to], plan_.owned(from, length)));
  transport_.copies->run(transfers_);
}

std::int64_t DeviceReduction::mixedAtATime(const SharedBlock& block) const {
  const std::int64_t inScratch = RowMixer::elementsAtATime(block, members_.front().mixing.bytes());
  if (members_.size() == 1) return inScratch;
  const auto staged = stagingBytes_ / (mostWorkers_ * static_cast<std::size_t>(block.parts()) *
                                       sizeOf(block.replicas.front().dtype()));
  return std::min(inScratch, static_cast<std::int64_t>(staged));
}

void DeviceReduction::mix(const SharedBlock& block, const Mixing& mixing) {
  const bool merged = !mixing.merged().empty() && block.hasMergedCopy();
  const bool ofMoments = block.rule == MergeRule::Moments;
  if (merged && !ofMoments)
    mean(block.replicas, mixing.merged(), 0, {0, block.mergedCopy().elements()}, block.mergedCopies);
  const auto needs = [&](const Member& member, std::size_t w) {
    const auto reads = [&](std::size_t own) { return mixing.reads(own, w); };
    return (merged && ofMoments) || std::ranges::any_of(member.workers, reads);
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
  const std::int64_t elements = block.elementsOfPart();
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
  if (plan_.groupOf()[worker] == member) return members_[member].mixer.read(worker);
  for (int p = 0; p < block.parts(); ++p)
    send(plan_.groupOf()[worker], member,
         part(block.replicas[worker], inPart(slice, p, block.elementsOfPart())),
         members_[member].mixer.inbox(worker, p));
}

}  // namespace muster
