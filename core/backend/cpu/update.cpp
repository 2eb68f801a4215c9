#include "muster/core/ops/update.h"

#include <cmath>
#include <limits>

#include "muster/core/backend/cpu/reduce.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/update_rules.h"

namespace muster::cpu {
namespace {

using update::AdaGradRule;
using update::AdamRule;
using update::NesterovsRule;
using update::RmsPropRule;
using update::SgdRule;
using update::Terms;

AdamRule adamRule(const AdamScalars& s) {
  return {static_cast<float>(s.beta1),
          static_cast<float>(1 - s.beta1),
          static_cast<float>(s.beta2),
          static_cast<float>(1 - s.beta2),
          static_cast<float>(1 / (1 - std::pow(s.beta1, s.t))),
          static_cast<float>(1 / (1 - std::pow(s.beta2, s.t))),
          static_cast<float>(s.epsilon)};
}

template <typename Rule>
[[gnu::always_inline]] inline void updateElements(Rule rule, Terms terms, float* __restrict w,
                                                  const float* __restrict g, float* __restrict first,
                                                  float* __restrict second, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float before = w[i];
    float a = 0, b = 0;
    if constexpr (Rule::kStates > 0) a = first[i];
    if constexpr (Rule::kStates > 1) b = second[i];
    const float step = rule.step(update::regularised(g[i], before, terms), terms.learningRate, a, b);
    if constexpr (Rule::kStates > 0) first[i] = a;
    if constexpr (Rule::kStates > 1) second[i] = b;
    w[i] = before - (step + terms.decay * before);
  }
}

double chunkPenalty(const float* w, std::int64_t n, const UpdateRange& range) {
  double penalty = 0;
  if (range.l1 != 0) penalty += range.l1 * dispatch<laneSum<Magnitude>>(w, n);
  if (range.l2 != 0) penalty += 0.5 * range.l2 * dispatch<laneSum<Square>>(w, n);
  return penalty;
}

/// @param ownDecay  weight decay of the rule itself, for the regularised ranges.
template <typename Rule>
double updateBy(const Rule& rule, const UpdateBlocks& blocks, std::span<const UpdateRange> ranges,
                GradientClip clip, Context& context, float ownDecay = 0) {
  float* w = blocks.parameters.data<float>();
  const float* g = blocks.gradients.data<float>();
  float* first = Rule::kStates > 0 ? blocks.state[0].data<float>() : nullptr;
  float* second = Rule::kStates > 1 ? blocks.state[1].data<float>() : nullptr;
  const float limit = clip.clipValue > 0 ? clip.clipValue : std::numeric_limits<float>::infinity();
  return sumOverChunks(ranges, context, [&](const UpdateRange& range, std::int64_t begin, std::int64_t end) {
    const float weightDecay = range.weightDecay + (range.regularised ? ownDecay : 0);
    const Terms terms{
        clip.scale, limit, range.l1, range.l2, range.learningRate, range.learningRate * weightDecay};
    const double penalty = chunkPenalty(w + begin, end - begin, range);
    dispatch<updateElements<Rule>>(rule, terms, w + begin, g + begin, first ? first + begin : nullptr,
                                   second ? second + begin : nullptr, end - begin);
    return penalty;
  });
}

}  // namespace

double updateSgd(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                 Context& context) {
  return updateBy(SgdRule{}, blocks, ranges, clip, context);
}

double updateNesterovs(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                       float momentum, Context& context) {
  return updateBy(NesterovsRule{momentum}, blocks, ranges, clip, context);
}

double updateAdam(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                  const AdamScalars& scalars, Context& context) {
  return updateBy(adamRule(scalars), blocks, ranges, clip, context, scalars.weightDecay);
}

double updateRmsProp(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     double decay, float epsilon, Context& context) {
  const RmsPropRule rule{static_cast<float>(decay), static_cast<float>(1 - decay), epsilon};
  return updateBy(rule, blocks, ranges, clip, context);
}

double updateAdaGrad(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     float epsilon, Context& context) {
  return updateBy(AdaGradRule{epsilon}, blocks, ranges, clip, context);
}

double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges,
                             Context& context) {
  const float* w = parameters.data<float>();
  return sumOverChunks(ranges, context, [&](const UpdateRange& range, std::int64_t begin, std::int64_t end) {
    return chunkPenalty(w + begin, end - begin, range);
  });
}

double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context) {
  const float* values = x.data<float>();
  const UpdateRange all{.begin = begin, .end = end};
  return sumOverChunks({&all, 1}, context, [&](const UpdateRange&, std::int64_t from, std::int64_t to) {
    return dispatch<laneSum<Square>>(values + from, to - from);
  });
}

}  // namespace muster::cpu
