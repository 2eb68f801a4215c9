#include "muster/parallel/exchange/host_exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "muster/core/base/error.h"

namespace muster {

HostExchange::HostExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState)
    : blocks_(sharedBlocks(states, updaterState, std::vector<int>(states.size()))),
      all_(states.size()),
      terms_(states.size()),
      sums_(static_cast<int>(states.size())) {
  std::iota(all_.begin(), all_.end(), std::size_t{0});
  for (auto& terms : terms_) terms.reserve(states.size());
}

void HostExchange::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                         Context& context, Spread* spread) {
  if (block.rule == MergeRule::Keep) return;
  const bool moments = block.rule == MergeRule::Moments;
  const Tensor& own = block.replicas[static_cast<std::size_t>(participant)];
  const auto [begin, end] = sliceOf(own.elements() / (moments ? 2 : 1), participant, participants());
  if (spread) *spread = weightedSpread(block.replicas, weights, begin, end, context);
  if (begin == end) return;
  Tensor mergedCopy = block.hasMergedCopy() ? block.mergedCopy() : Tensor();
  if (block.rule == MergeRule::Reset) {
    const auto zero = [&](const Tensor& t) {
      const std::size_t size = sizeOf(t.dtype());
      std::memset(static_cast<std::byte*>(t.raw()) + static_cast<std::size_t>(begin) * size, 0,
                  static_cast<std::size_t>(end - begin) * size);
    };
    std::ranges::for_each(block.replicas, zero);
    if (mergedCopy.defined()) zero(mergedCopy);
  } else if (moments) {
    weightedMoments(block.replicas, weights, mergedCopy, begin, end, context);
  } else {
    weightedMean(block.replicas, weights, mergedCopy, begin, end, context);
  }
}

void HostExchange::mean(int participant, std::span<const Tensor> tensors, std::span<const double> weights,
                        Slice slice, std::span<const Tensor> into, Context& context) {
  const auto [begin, end] = partOf(slice, into.front().elements(), participant, participants());
  if (begin == end) return;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  auto& terms = terms_[static_cast<std::size_t>(participant)];
  terms.clear();
  for (std::size_t w = 0; w < tensors.size(); ++w)
    if (weights[w] > 0) terms.push_back({weights[w] / total, tensors[w]});
  linearCombination(terms, into.front(), begin, end, context);
}

void HostExchange::eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                             ShareUse use) {
  const Slice own = partOf(slice, elements, participant, participants());
  if (own.length() > 0) use({context, all_, own});
}

}  // namespace muster
