#include "muster/parallel/strategies/outer_step.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/ops/non_finite.h"
#include "muster/core/ops/step_to_mean.h"

namespace muster {
namespace {

constexpr std::string_view kMomentum = "outer momentum", kMean = "mean";
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

void OuterStep::declare(std::vector<StrategyBlock>& blocks, bool meanInFlight) const {
  blocks.push_back(
      {.name = std::string(kMean), .dtype = DType::Float64, .saved = meanInFlight, .inFlight = true});
  if (momentum > 0) blocks.push_back({.name = std::string(kMomentum)});
}

void OuterStep::takeAtOnce(std::span<const double> weights, double scale, Verbs& verbs) const {
  const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
  const Tensor& outer = parameters.mergedCopy();
  StepToMean step{.rate = rate};
  if (momentum > 0)
    step = {.rate = rate, .decay = decay(scale), .ahead = ahead(), .moves = verbs.own(kMomentum).front()};
  try {
    verbs.eachShare(outer.elements(), [&](const Share& share) {
      stepToMean(parameters.replicas, weights, outer, step, share.slice.begin, share.slice.end,
                 share.context);
    });
  } catch (const NonFiniteResult&
               bad) {  // this element was not written, so the verbs below fail, too, and name it
    const Fragment there{{{bad.element(), bad.element() + 1}}};
    verbs.mean(parameters.replicas, weights, verbs.own(kMean), there);
    apply(there, verbs, scale);
    writeBack(0, there, verbs);
    throw;
  }
  const auto own = static_cast<std::size_t>(verbs.participant());
  verbs.countBytes(bytesToMerge(parameters, own, weights));
}

void OuterStep::takeMean(CodedReplicas& sending, std::span<const double> weights, double remember,
                         const Fragment& fragment, Verbs& verbs, bool later) const {
  const std::span<const Tensor> outer = verbs.block(BlockKind::Parameters).mergedCopies;
  sending.mean(weights, {{1, outer}, {ahead(), look(verbs)}}, remember, fragment, verbs.own(kMean), verbs,
               later);
}

void OuterStep::apply(const Fragment& fragment, Verbs& verbs, double scale) const {
  const std::span<const Tensor> outer = verbs.block(BlockKind::Parameters).mergedCopies;
  const auto mean = verbs.own(kMean);
  // Rate 1 without momentum copies the mean: W + (mean - W) would be rounded twice.
  if (momentum == 0) return verbs.combine(outer, {{rate, mean}, {1 - rate, outer}}, fragment);
  const auto moves = verbs.own(kMomentum);
  verbs.combine(moves, {{decay(scale), moves}, {rate, mean}, {-rate, outer}}, fragment);
  verbs.combine(outer, {{1, outer}, {1, moves}}, fragment);
}

std::span<const Tensor> OuterStep::look(Verbs& verbs) const {
  return momentum == 0 ? std::span<const Tensor>(verbs.block(BlockKind::Parameters).mergedCopies)
                       : verbs.own(kMomentum);
}

void OuterStep::writeBack(double keep, const Fragment& fragment, Verbs& verbs) const {
  if (keep == 1) return;
  const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
  verbs.combine(
      parameters.replicas,
      {{keep, parameters.replicas}, {1 - keep, parameters.mergedCopies}, {(1 - keep) * ahead(), look(verbs)}},
      fragment);
}

}  // namespace muster
