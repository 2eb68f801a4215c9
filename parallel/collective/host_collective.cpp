#include "muster/parallel/collective/host_collective.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "muster/core/base/error.h"
#include "muster/core/ops/merge.h"

namespace muster {

constexpr std::int64_t kSliceAlignment = 16;  // float32 in 64 bytes: no two participants share a cache line

namespace {

/// What cannot be merged is refused before anybody trains, not in the middle of a merge.
void requireMergeable(const StateBlock& block) {
  if (block.kind != BlockKind::Gradients &&
      (block.merge == MergeRule::Keep || block.merge == MergeRule::Reset))
    return;
  const DType type = block.values.dtype();
  if ((type != DType::Float32 && type != DType::Float64) || block.values.layout() != Layout::RowMajor)
    throw InvalidArgument(
        fmt::format("collective: block {} is {}; what is merged must be float32 or float64, and "
                    "row-major",
                    block.name, block.values.toString()));
  require(block.merge != MergeRule::Moments || block.values.elements() % 2 == 0,
          "collective: block {} is to be merged as means and variances, but has {} elements", block.name,
          block.values.elements());
}

}  // namespace

HostCollective::HostCollective(const std::vector<std::vector<StateBlock*>>& states, bool averageUpdaters)
    : participants_(static_cast<int>(states.size())) {
  require(!states.empty(), "collective: there are no replicas");
  for (std::size_t w = 0; w < states.size(); ++w)
    require(states[w].size() == states.front().size(),
            "collective: worker {} has {} state blocks, worker 0 has {}", w, states[w].size(),
            states.front().size());
  for (std::size_t b = 0; b < states.front().size(); ++b) {
    const StateBlock& first = *states.front()[b];
    requireMergeable(first);
    SharedBlock shared{
        .name = first.name, .kind = first.kind, .rule = first.merge, .replicas = {}, .shadow = {}};
    if (first.kind == BlockKind::Gradients) shared.rule = MergeRule::Average;
    if (first.kind == BlockKind::UpdaterState && !averageUpdaters) shared.rule = MergeRule::Keep;
    for (std::size_t w = 0; w < states.size(); ++w) {
      const StateBlock& block = *states[w][b];
      require(block.name == first.name && block.values.shape() == first.values.shape(),
              "collective: block {} {} of worker {} differs from block {} {} of worker 0", block.name,
              block.values.shape().toString(), w, first.name, first.values.shape().toString());
      shared.replicas.push_back(block.values);
    }
    if (first.kind != BlockKind::Gradients)
      shared.shadow = Tensor::zeros(first.values.shape(), first.values.dtype());
    blocks_.push_back(std::move(shared));
  }
}

Slice sliceOf(std::int64_t elements, int participant, int participants) {
  const std::int64_t units = (elements + kSliceAlignment - 1) / kSliceAlignment;
  const auto boundary = [&](int p) { return std::min(elements, units * p / participants * kSliceAlignment); };
  return {boundary(participant), boundary(participant + 1)};
}

std::int64_t HostCollective::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                                   Context& context) {
  if (block.rule == MergeRule::Keep) return 0;
  const bool moments = block.rule == MergeRule::Moments;
  const Tensor& own = block.replicas[participant];
  const auto [begin, end] = sliceOf(own.elements() / (moments ? 2 : 1), participant, participants_);
  const bool travels = participants_ > 1 && weights[participant] > 0 && block.rule != MergeRule::Reset;
  const std::int64_t bytes = travels ? static_cast<std::int64_t>(own.bytes()) : 0;
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

Spread HostCollective::spread(int participant, const SharedBlock& block, std::span<const double> weights) {
  const auto [begin, end] = sliceOf(block.replicas[participant].elements(), participant, participants_);
  return weightedSpread(block.replicas, weights, begin, end);
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

std::int64_t HostCollective::addEncoded(int participant, const SharedBlock& block,
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

std::int64_t HostCollective::addDense(int participant, const SharedBlock& block,
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
