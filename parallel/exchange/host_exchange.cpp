#include "muster/parallel/exchange/host_exchange.h"

#include <numeric>

#include "muster/parallel/exchange/grouped_sum.h"

namespace muster {

HostExchange::HostExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
                           int groups)
    : Exchange({.participants = static_cast<int>(states.size()),
                .senders = groups == 1 ? static_cast<int>(states.size()) : groups,
                .onePlace = true,
                .oneSum = groups == 1},
               sharedBlocks(states, updaterState, std::vector<std::size_t>(states.size()))),
      groups_(static_cast<std::size_t>(groups)),
      all_(states.size()),
      terms_(states.size()),
      sums_(static_cast<int>(states.size()), groups) {
  std::iota(all_.begin(), all_.end(), std::size_t{0});
  for (std::size_t g = 0; g < groups_; ++g)
    for (std::size_t w = g; w < all_.size(); w += groups_) byGroup_.push_back(w);
  for (auto& terms : terms_) terms.reserve(states.size() + 1);
  for (std::size_t w = 0; w < states.size(); ++w) mixers_.emplace_back(states.size());
}

void HostExchange::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                         Context& context, Spread* spread) {
  const bool moments = block.rule == MergeRule::Moments;
  const std::int64_t elements = block.elementsOfPart();
  const auto [begin, end] = shareOf({0, elements}, elements, participant);
  if (spread && groups_ == 1) *spread = weightedSpread(block.replicas, weights, begin, end, context);
  if (begin == end) return;
  Tensor mergedCopy = block.hasMergedCopy() ? block.mergedCopy() : Tensor();
  if (moments) {
    weightedMoments(block.replicas, weights, mergedCopy, begin, end, context);
  } else if (groups_ == 1) {
    weightedMean(block.replicas, weights, mergedCopy, begin, end, context);
  } else {
    const Tensor& into = mergedCopy.defined() ? mergedCopy : block.replicas.front();
    groupedMean(participant, {block.replicas, weights, {begin, end}, std::span(&into, 1)}, context);
    if (spread) *spread = spreadAbout(into, block.replicas, weights, all_, {begin, end}, context);
    const Term result{1, into};
    for (const Tensor& replica : block.replicas)
      if (replica.raw() != into.raw()) linearCombination(std::span(&result, 1), replica, begin, end, context);
  }
}

void HostExchange::groupedMean(int participant, const SliceMean& mean, Context& context) {
  const double total = std::accumulate(mean.weights.begin(), mean.weights.end(), 0.0);
  auto& terms = terms_[static_cast<std::size_t>(participant)];
  const auto termsOf = [&](std::size_t group, Slice piece) {
    terms.clear();
    for (std::size_t w = group; w < mean.tensors.size(); w += groups_)
      if (mean.weights[w] > 0)
        terms.push_back({(1 - mean.keep) * (mean.weights[w] / total), part(mean.tensors[w], piece)});
    return std::span<const Term>(terms);
  };
  addGroups("mean", groups_, termsOf, mean.keep, mean.into.front(), mean.slice, context);
}

void HostExchange::mix(int participant, const SharedBlock& block, const Mixing& mixing, Context& context) {
  const bool moments = block.rule == MergeRule::Moments;
  const bool merged = !mixing.merged().empty() && block.hasMergedCopy();
  if (merged && !moments)
    mean(participant,
         {block.replicas, mixing.merged(), {0, block.mergedCopy().elements()}, block.mergedCopies}, context);
  const auto all = [](std::size_t) { return true; };
  inPieces(participant, block, context, all, [&](RowMixer& mixer) {
    if (merged && moments) mixer.merge(mixing.merged(), 0, block.mergedCopy());
    mixer.mix(mixing, byGroup_);
  });
}

void HostExchange::moments(int participant, const SharedBlock& block, std::span<const double> weights,
                           double keep, Context& context) {
  const auto counts = [&](std::size_t w) { return weights[w] > 0; };
  inPieces(participant, block, context, counts,
           [&](RowMixer& mixer) { mixer.merge(weights, keep, block.mergedCopy()); });
}

template <typename Reads, typename Form>
void HostExchange::inPieces(int participant, const SharedBlock& block, Context& context, Reads reads,
                            Form form) {
  const std::int64_t elements = block.elementsOfPart();
  RowMixer& mixer = mixers_[static_cast<std::size_t>(participant)];
  mixer.inPieces(block, shareOf({0, elements}, elements, participant), context, [&](Slice) {
    for (const std::size_t w : all_)
      if (reads(w)) mixer.read(w);
    form(mixer);
  });
}

void HostExchange::mean(int participant, const SliceMean& mean, Context& context) {
  const auto& [tensors, weights, slice, into, keep, later] = mean;
  const auto [begin, end] = shareOf(slice, into.front().elements(), participant);
  if (begin == end) return;
  if (groups_ > 1) return groupedMean(participant, {tensors, weights, {begin, end}, into, keep}, context);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  auto& terms = terms_[static_cast<std::size_t>(participant)];
  terms.clear();
  for (std::size_t w = 0; w < tensors.size(); ++w)
    if (weights[w] > 0) terms.push_back({(1 - keep) * (weights[w] / total), viewOf(tensors[w])});
  if (keep > 0) terms.push_back({keep, viewOf(into.front())});
  linearCombination(terms, into.front(), begin, end, context);
}

Slice HostExchange::shareOf(Slice slice, std::int64_t elements, int participant) const {
  if (byFirst_) return participant == 0 ? slice : Slice{slice.begin, slice.begin};
  return partOf(slice, elements, participant, participants());
}

void HostExchange::eachReplica(int participant, std::int64_t elements, Context& context,
                               const ShareUse& use) {
  if (byFirst_) return eachShare(participant, elements, {0, elements}, context, use);
  sums_.sum(participant, {});  // the others have finished their slices
  use({context, std::span(all_).subspan(static_cast<std::size_t>(participant), 1), {0, elements}});
  sums_.sum(participant, {});  // and now see this replica's result
}

}  // namespace muster
