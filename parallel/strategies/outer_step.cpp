#include "muster/parallel/strategies/outer_step.h"

#include "muster/core/ops/step_to_mean.h"

namespace muster {
namespace {

constexpr double kMostRate = 1e6;  // above this rate one step may overflow, whatever the replicas

}  // namespace

void OuterStep::validate(std::string_view rule) const {
  require(rate > 0, "{}: rate must be above 0, got {}", rule, rate);
  require(rate <= kMostRate, "{}: rate can be at most {}, got {}", rule, kMostRate, rate);
  require(momentum >= 0 && momentum < 1, "{}: momentum must be in [0, 1), got {}", rule, momentum);
}

std::string OuterStep::describe() const {
  return fmt::format("rate {}, {}momentum {}", rate, nesterov ? "Nesterov " : "", momentum);
}

std::vector<StrategyBlock> OuterStep::blocks(bool meanInFlight) const {
  std::vector<StrategyBlock> blocks{
      {.name = kMean, .dtype = DType::Float64, .saved = meanInFlight, .inFlight = true}};
  if (momentum > 0) blocks.push_back({.name = kMomentum});
  return blocks;
}

void OuterStep::takeAtOnce(std::span<const double> weights, double scale, MergeOps& ops) const {
  const SharedBlock& parameters = ops.block(BlockKind::Parameters);
  const Tensor& outer = parameters.mergedCopy();
  StepToMean step{.rate = rate};
  if (momentum > 0)
    step = {.rate = rate, .decay = decay(scale), .ahead = ahead(), .moves = ops.own(kMomentum).front()};
  try {
    ops.eachShare(outer.elements(), [&](const Share& share) {
      stepToMean(parameters.replicas, weights, outer, step, share.slice.begin, share.slice.end,
                 share.context);
    });
  } catch (const NonFiniteResult& bad) {
    // This element was not written, so the operations below fail, too, and name it.
    const Fragment there{{{bad.element(), bad.element() + 1}}};
    ops.mean(parameters.replicas, weights, ops.own(kMean), there);
    apply(there, ops, scale);
    writeBack(0, there, ops);
    throw;
  }
  const auto own = static_cast<std::size_t>(ops.participant());
  ops.countBytes(bytesToMerge(parameters, own, weights));
}

void OuterStep::takeMean(CodedReplicas& sending, std::span<const double> weights, double remember,
                         const Fragment& fragment, MergeOps& ops, bool later) const {
  const std::span<const Tensor> outer = ops.block(BlockKind::Parameters).mergedCopies;
  sending.mean(weights, {{1, outer}, {ahead(), lookAhead(ops)}}, remember, fragment, ops.own(kMean), ops,
               later);
}

void OuterStep::apply(const Fragment& fragment, MergeOps& ops, double scale) const {
  const std::span<const Tensor> outer = ops.block(BlockKind::Parameters).mergedCopies;
  const auto mean = ops.own(kMean);
  // Rate 1 without momentum copies the mean: W + (mean - W) would be rounded twice.
  if (momentum == 0) return ops.combine(outer, {{rate, mean}, {1 - rate, outer}}, fragment);
  const auto moves = ops.own(kMomentum);
  ops.combine(moves, {{decay(scale), moves}, {rate, mean}, {-rate, outer}}, fragment);
  ops.combine(outer, {{1, outer}, {1, moves}}, fragment);
}

std::span<const Tensor> OuterStep::lookAhead(MergeOps& ops) const {
  return momentum == 0 ? std::span<const Tensor>(ops.block(BlockKind::Parameters).mergedCopies)
                       : ops.own(kMomentum);
}

void OuterStep::writeBack(double keep, const Fragment& fragment, MergeOps& ops) const {
  if (keep == 1) return;
  const SharedBlock& parameters = ops.block(BlockKind::Parameters);
  ops.combine(parameters.replicas,
              {{keep, parameters.replicas},
               {1 - keep, parameters.mergedCopies},
               {(1 - keep) * ahead(), lookAhead(ops)}},
              fragment);
}

}  // namespace muster
