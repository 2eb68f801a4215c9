#include "muster/parallel/exchange/merge_ops.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

constexpr std::size_t kMostOperands = 8;

void requireOneEach(std::string_view what, std::size_t count, int participants) {
  require(count == static_cast<std::size_t>(participants), "{}: expected one for each of {} workers, got {}",
          what, participants, count);
}

/// Whether two workers' targets are formed from the same values, and the first target is not one of these.
bool alike(std::initializer_list<Operand> operands, std::span<const Tensor> target, std::size_t first,
           std::size_t other) {
  return std::ranges::all_of(operands, [&](const Operand& operand) {
    const void* const values = operand.values[first].raw();
    return operand.factor == 0 || (values == operand.values[other].raw() && values != target[first].raw());
  });
}

bool isOf(std::span<const Tensor> some, const Tensor& target) {
  return std::ranges::find(some, target.raw(), &Tensor::raw) != some.end();
}

std::string segmentText(const SegmentTable* segments, std::int64_t element) {
  for (const Segment& segment : segments ? std::span(segments->segments) : std::span<const Segment>())
    if (element >= segment.offset && element < segment.offset + segment.shape.elements())
      return fmt::format("element {} of {}", element - segment.offset, segment.name);
  return fmt::format("element {}", element);
}

double valueAt(const Tensor& values, std::int64_t i) {
  return values.dtype() == DType::Float64 ? values.data<double>()[i] : values.data<float>()[i];
}

}  // namespace

void MergeOps::throwNotFinite(const Tensor& target, std::int64_t element) const {
  const auto blocks = exchange_.blocks();
  const auto own = exchange_.strategyBlocks();
  const auto shared = std::ranges::find_if(
      blocks, [&](const auto& one) { return isOf(one.replicas, target) || isOf(one.mergedCopies, target); });
  const auto strategys = std::ranges::find_if(own, [&](const auto& one) { return isOf(one.values, target); });
  const bool found = shared != blocks.end();
  const SharedBlock& like = found ? *shared : exchange_.block(BlockKind::Parameters);
  std::string text = fmt::format("a merge would not leave finite numbers: {} of the {}",
                                 segmentText(like.segments.get(), element),
                                 found                    ? like.name
                                 : strategys != own.end() ? "strategy's " + strategys->declared.name
                                                          : "strategy's own numbers");
  const bool all = waiting_ == Waiting::Any;  // all workers wait, so replicas with such a number can be named
  for (std::size_t w = 0; w < like.replicas.size(); ++w)
    if (all && exchange_.isHere(w) && element < like.replicas[w].elements())
      if (const double value = valueAt(like.replicas[w], element); !std::isfinite(value))
        text += fmt::format(", where worker {} has {}", w, value);
  throw NonFiniteScore(text);
}

bool MergeOps::seenBefore(std::span<const Tensor> tensors, std::span<const std::size_t> workers,
                          std::size_t at) {
  return std::ranges::any_of(workers.first(at),
                             [&](std::size_t w) { return tensors[w].raw() == tensors[workers[at]].raw(); });
}

void MergeOps::requireMean(std::span<const double> weights, double keep) {
  require(keep >= 0 && keep < 1, "mean: keep must be in [0, 1), got {}", keep);
  double total = 0;
  for (const double weight : weights) {
    require(std::isfinite(weight) && weight >= 0, "mean: weights must be finite and not negative, got {}",
            weight);
    total += weight;
  }
  require(total > 0, "mean: the weights sum to {}, so there is no mean", total);
}

void detail::combineOf(std::size_t w, std::initializer_list<Operand> operands, const Tensor& target,
                       Slice slice, Context& context) {
  std::array<Term, kMostOperands> terms;
  std::size_t count = 0;
  for (const auto& [factor, values] : operands)
    if (factor != 0) terms.at(count++) = {factor, viewOf(values[w])};
  linearCombination(std::span(terms).first(count), target, slice.begin, slice.end, context);
}

void MergeOps::requireWaiting(std::string_view op, bool may) const {
  require(may, "{}: it makes participants wait for each other, which is not possible {}", op,
          waiting_ == Waiting::None ? "before a round ends" : "if workers arrive one by one");
}

void MergeOps::mean(std::span<const Tensor> tensors, std::span<const double> weights,
                    std::span<const Tensor> into, const Fragment& fragment, double keep, bool later) {
  requireOneEach("mean: tensors", tensors.size(), participants());
  requireOneEach("mean: weights", weights.size(), participants());
  requireOneEach("mean: targets", into.size(), participants());
  requireMean(weights, keep);
  require(!later || keep == 0, "mean: keep must be 0 if the mean is formed later, got {}", keep);
  named(into.front(), [&] {
    for (const Slice slice : fragment.slices)
      exchange_.mean(participant_, {tensors, weights, slice, into, keep, later}, context_);
  });
  const auto own = static_cast<std::size_t>(participant_);
  if (participants() > 1 && weights[own] > 0)
    bytes_ += fragment.elements() * static_cast<std::int64_t>(sizeOf(tensors[own].dtype()));
}

void MergeOps::combine(std::span<const Tensor> target, std::initializer_list<Operand> operands,
                       const Fragment& fragment) {
  require(operands.size() <= kMostOperands, "combine: {} operands are more than {}", operands.size(),
          kMostOperands);
  requireOneEach("combine: targets", target.size(), participants());
  for (const Operand& operand : operands)
    requireOneEach("combine: values of an operand", operand.values.size(), participants());
  const auto combineShare = [&](const Share& share) {
    for (std::size_t i = 0; i < share.workers.size(); ++i) {
      if (seenBefore(target, share.workers, i)) continue;
      const std::size_t worker = share.workers[i], before = share.workers[i > 0 ? i - 1 : 0];
      if (i > 0 && alike(operands, target, before, worker))
        linearCombination(std::array{Term{1, viewOf(target[before])}}, target[worker], share.slice.begin,
                          share.slice.end, share.context);
      else
        detail::combineOf(worker, operands, target[worker], share.slice, share.context);
    }
  };
  named(target.front(), [&] {
    for (const Slice slice : fragment.slices)
      exchange_.eachShare(participant_, target.front().elements(), slice, context_, std::ref(combineShare));
  });
}

Spread MergeOps::distance(std::span<const Tensor> values, std::span<const Tensor> about,
                          const Fragment& fragment) {
  requireOneEach("distance: values", values.size(), participants());
  requireOneEach("distance: values to compare with", about.size(), participants());
  Spread spread;
  const auto addShare = [&](const Share& share) {
    const auto [begin, end] = share.slice;
    Spread last;  // of the previous worker: merged copies of one device are compared once
    for (std::size_t i = 0; i < share.workers.size(); ++i) {
      const std::size_t w = share.workers[i], before = share.workers[i > 0 ? i - 1 : 0];
      const bool sameOrigin = i > 0 && about[w].raw() == about[before].raw();
      if (!sameOrigin) last.norm = squaredDistance(about[w], Tensor(), begin, end, share.context);
      if (!sameOrigin || values[w].raw() != values[before].raw())
        last.distance = squaredDistance(values[w], about[w], begin, end, share.context);
      spread.distance += last.distance;
      spread.norm += last.norm;
    }
  };
  for (const Slice slice : fragment.slices)
    exchange_.eachShare(participant_, values.front().elements(), slice, context_, std::ref(addShare));
  addOverNodes(spread);
  return spread;
}

void MergeOps::addOverNodes(Spread& spread) {
  if (exchange_.nodes() == 1) return;
  std::array sums{spread.distance, spread.norm};
  allReduce(sums);
  spread = participant_ < exchange_.nodes() ? Spread{.distance = sums[0], .norm = sums[1]} : Spread{};
}

void MergeOps::writeBack(std::span<const Tensor> from, std::span<const Tensor> replicas, double keep,
                         const Fragment& fragment) {
  require(keep >= 0 && keep <= 1, "writeBack: keep must be between 0 and 1, got {}", keep);
  if (keep < 1) combine(replicas, {{keep, replicas}, {1 - keep, from}}, fragment);
}

}  // namespace muster
