#include "muster/core/ops/update.h"

#include <cmath>
#include <limits>

#include "muster/core/backend/cpu/reduce.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/ops/loss.h"

namespace muster::cpu {
namespace {

using update::StepNumbers;
using update::Terms;

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

bool allGood(std::span<const double> losses) {
  for (std::size_t i = 0; i + kLossNumbers <= losses.size(); i += kLossNumbers)
    if (!std::isfinite(losses[i]) || !(losses[i + 1] >= 0) || losses[i + 2] >= 0) return false;
  return true;
}

class LoopUpdatePlan final : public UpdatePlan {
 public:
  LoopUpdatePlan(const UpdateSettings& settings, std::int64_t elements, std::vector<UpdateRange> ranges,
                 Context& context)
      : UpdatePlan(settings.rule, elements, context.device()),
        settings_(settings),
        ranges_(std::move(ranges)),
        context_(context) {}

 private:
  void compute(const UpdateBlocks& blocks, const StepNumbers* step, double* penalty,
               std::span<const double> losses) override {
    const auto updateBy = [&](const auto& rule) {
      return updateAll(update::atStep(rule, *step), blocks, *step);
    };
    *penalty = allGood(losses) ? std::visit(updateBy, settings_.rule) : 0;
  }

  /// @return the penalty.
  template <typename Rule>
  double updateAll(const Rule& rule, const UpdateBlocks& blocks, const StepNumbers& step) {
    float* const w = blocks.parameters.data<float>();
    const float* const g = blocks.gradients.data<float>();
    float* const first = Rule::kStates > 0 ? blocks.state[0].data<float>() : nullptr;
    float* const second = Rule::kStates > 1 ? blocks.state[1].data<float>() : nullptr;
    const auto scale = static_cast<float>(step.gradientScale * normScale(blocks.gradients, step));
    const float limit = settings_.clipValue > 0 ? static_cast<float>(settings_.clipValue)
                                                : std::numeric_limits<float>::infinity();
    return sumOverChunks(
        ranges_, context_, [&](const UpdateRange& range, std::int64_t begin, std::int64_t end) {
          const auto learningRate = static_cast<float>(step.learningRate * range.learningRate);
          const Terms terms{scale, limit, range.l1, range.l2, learningRate, learningRate * range.weightDecay};
          const double penalty = chunkPenalty(w + begin, end - begin, range);
          dispatch<updateElements<Rule>>(rule, terms, w + begin, g + begin, first ? first + begin : nullptr,
                                         second ? second + begin : nullptr, end - begin);
          return penalty;
        });
  }

  /// The gradient's factor from clipping by norm.
  double normScale(const Tensor& gradients, const StepNumbers& step) const {
    if (settings_.clipNorm == 0) return 1;
    double squares = 0;
    for (const auto& range : ranges_)
      squares += cpu::squaredNorm(gradients, range.begin, range.end, context_);
    const double norm = step.gradientScale * std::sqrt(squares);
    return norm > settings_.clipNorm ? settings_.clipNorm / norm : 1;
  }

  UpdateSettings settings_;
  std::vector<UpdateRange> ranges_;
  Context& context_;
};

}  // namespace

std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::vector<UpdateRange> ranges, Context& context) {
  return std::make_unique<LoopUpdatePlan>(settings, elements, std::move(ranges), context);
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
