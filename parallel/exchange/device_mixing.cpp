#include <algorithm>

#include "muster/parallel/exchange/device_reduction.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {

/// Whether a row of the member's workers reads this replica.
bool DeviceReduction::reads(const Member& member, const Mixing& mixing, std::size_t worker) const {
  return std::ranges::any_of(member.workers, [&](std::size_t w) { return mixing.reads(w, worker); });
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
