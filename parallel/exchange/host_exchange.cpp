#include "muster/parallel/exchange/host_exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "muster/core/base/error.h"
#include "muster/core/ops/merge.h"

namespace muster {

HostExchange::HostExchange(const std::vector<std::vector<StateBlock*>>& states, bool averageUpdaters)
    : participants_(static_cast<int>(states.size())),
      blocks_(sharedBlocks(states, averageUpdaters, std::vector<int>(states.size()))) {}

std::int64_t HostExchange::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                                 Context& context, Spread* spread) {
  if (spread) *spread = {};
  if (block.rule == MergeRule::Keep) return 0;
  const bool moments = block.rule == MergeRule::Moments;
  const Tensor& own = block.replicas[participant];
  const auto [begin, end] = sliceOf(own.elements() / (moments ? 2 : 1), participant, participants_);
  const auto bytes = bytesToMerge(block, static_cast<std::size_t>(participant), weights);
  if (spread) *spread = weightedSpread(block.replicas, weights, begin, end);
  if (begin == end) return bytes;
  Tensor shadow = block.shadow;
  if (block.rule == MergeRule::Reset) {
    const auto zero = [&](const Tensor& t) {
      const std::size_t size = sizeOf(t.dtype());
      std::memset(static_cast<std::byte*>(t.raw()) + static_cast<std::size_t>(begin) * size, 0,
                  static_cast<std::size_t>(end - begin) * size);
    };
    std::ranges::for_each(block.replicas, zero);
    zero(shadow);
  } else if (moments) {
    weightedMoments(block.replicas, weights, shadow, begin, end, context);
  } else {
    weightedMean(block.replicas, weights, shadow, begin, end, context);
  }
  return bytes;
}

namespace {

void copyToReplicas(const SharedBlock& block, Slice slice, Context& context) {
  const Shape shape{slice.end - slice.begin};
  const Tensor from = block.shadow.slice(slice.begin, shape);
  for (const auto& replica : block.replicas) {
    Tensor to = replica.slice(slice.begin, shape);
    copy(from, to, context);
  }
}

}  // namespace

std::int64_t HostExchange::addEncoded(int participant, const SharedBlock& block,
                                      std::span<const ThresholdMessage* const> messages,
                                      std::span<const double> weights, Context& context) {
  const Slice slice = sliceOf(block.shadow.elements(), participant, participants_);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  Tensor shadow = block.shadow;
  for (std::size_t w = 0; w < messages.size(); ++w)  // in worker order, whoever is first
    if (weights[w] > 0)
      addDecoded(*messages[w], static_cast<float>(weights[w] / total), slice.begin, slice.end, shadow);
  copyToReplicas(block, slice, context);
  return weights[participant] > 0 ? messages[participant]->bytes() : 0;
}

std::int64_t HostExchange::addDense(int participant, const SharedBlock& block,
                                    std::span<const Tensor> vectors, std::span<const double> weights,
                                    Context& context, Spread& spread) {
  const Slice slice = sliceOf(block.shadow.elements(), participant, participants_);
  Tensor shadow = block.shadow;
  spread = addWeightedMean(vectors, weights, slice.begin, slice.end, shadow);
  for (const auto& vector : vectors) {
    Tensor part = vector.slice(slice.begin, {slice.end - slice.begin});
    setZero(part, context);
  }
  copyToReplicas(block, slice, context);
  return weights[participant] > 0 ? static_cast<std::int64_t>(vectors[participant].bytes()) : 0;
}

}  // namespace muster
