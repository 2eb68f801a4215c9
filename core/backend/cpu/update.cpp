#include "muster/core/ops/update.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "muster/core/backend/cpu/reduce.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/ops/detail/finite.h"
#include "muster/core/ops/loss.h"

// Note [An update is whole or not at all]
// An update must leave neither non-finite numbers nor half a step. So one pass over the gradient first finds
// its largest magnitude: the pass for clipping by norm if there is one, else a separate pass, which loads the
// cache lines that the update reads next. That magnitude and the largest one written by the previous update
// bound all numbers that this update writes. If the bound exceeds float32, or there was no previous update,
// the update is first computed without writing.

namespace muster::cpu {
namespace {

using muster::detail::isFinite;
using muster::detail::largestMagnitude;
using muster::detail::magnitudeBits;
using update::StepNumbers;
using update::Terms;

/// @return the largest magnitude among the new parameters and states.
template <typename Rule, bool kWrite>
[[gnu::always_inline]] inline std::int32_t updateElements(Rule rule, Terms terms, float* __restrict w,
                                                          const float* __restrict g, float* __restrict first,
                                                          float* __restrict second, std::int64_t n) {
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float before = w[i];
    float a = 0, b = 0;
    if constexpr (Rule::kStates > 0) a = first[i];
    if constexpr (Rule::kStates > 1) b = second[i];
    const float step = rule.step(update::regularised(g[i], before, terms), terms.learningRate, a, b);
    const float after = before - (step + terms.decay * before);
    if constexpr (kWrite && Rule::kStates > 0) first[i] = a;
    if constexpr (kWrite && Rule::kStates > 1) second[i] = b;
    if constexpr (kWrite) w[i] = after;
    largest = std::max(largest, magnitudeBits(after));
    if constexpr (Rule::kStates > 0) largest = std::max(largest, magnitudeBits(a));
    if constexpr (Rule::kStates > 1) largest = std::max(largest, magnitudeBits(b));
  }
  return largest;
}

void raiseTo(std::atomic<std::int32_t>& largest, std::int32_t other) {
  std::int32_t now = largest.load(std::memory_order_relaxed);
  while (now < other && !largest.compare_exchange_weak(now, other, std::memory_order_relaxed)) {
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
               std::span<const double> losses, const Guard& guard) override {
    const auto updateBy = [&](const auto& rule) {
      return updateAll(update::atStep(rule, *step), blocks, *step);
    };
    const bool good = allGood(losses);
    *penalty = good ? std::visit(updateBy, settings_.rule) : 0;
    if (guard.badGradient) *guard.badGradient = static_cast<double>(badGradient(blocks.gradients));
    if (guard.refused) *guard.refused = good && !std::isnan(*penalty) ? 0 : 1;
  }

  /// @return the penalty; NaN if nothing was updated.
  template <typename Rule>
  double updateAll(const Rule& rule, const UpdateBlocks& blocks, const StepNumbers& step) {
    const Scan gradient = scan(blocks.gradients, step);
    const auto scale = static_cast<float>(step.gradientScale * gradient.normScale);
    const double largest = gradient.largest * std::abs(static_cast<double>(scale));
    if (!std::isfinite(largest)) return kRefused;
    const bool known = blocks.parameters.raw() == updated_;
    if (!(known && staysFinite(rule, step, largest)) &&
        !isFinite<float>(pass<Rule, false>(rule, blocks, step, scale).largest))
      return kRefused;
    const Written written = pass<Rule, true>(rule, blocks, step, scale);
    const bool finite = isFinite<float>(written.largest);  // false: non-finite parameters were written
    largest_ = std::bit_cast<float>(written.largest);
    updated_ = finite ? blocks.parameters.raw() : nullptr;
    return finite ? written.penalty : kRefused;
  }

  struct Written {
    double penalty = 0;
    std::int32_t largest = 0;  // magnitude among parameters and states
  };

  /// @tparam kWrite  whether to write the results.
  template <typename Rule, bool kWrite>
  Written pass(const Rule& rule, const UpdateBlocks& blocks, const StepNumbers& step, float scale) const {
    float* const w = blocks.parameters.data<float>();
    const float* const g = blocks.gradients.data<float>();
    float* const first = Rule::kStates > 0 ? blocks.state[0].data<float>() : nullptr;
    float* const second = Rule::kStates > 1 ? blocks.state[1].data<float>() : nullptr;
    std::atomic<std::int32_t> largest{0};
    const double penalty =
        sumOverChunks(ranges_, context_, [&](const UpdateRange& range, std::int64_t begin, std::int64_t end) {
          const auto learningRate = static_cast<float>(step.learningRate * range.learningRate);
          const Terms terms{scale,    clipLimit(),  range.l1,
                            range.l2, learningRate, learningRate * range.weightDecay};
          const double part = kWrite ? chunkPenalty(w + begin, end - begin, range) : 0;
          raiseTo(largest, dispatch<updateElements<Rule, kWrite>>(
                               rule, terms, w + begin, g + begin, first ? first + begin : nullptr,
                               second ? second + begin : nullptr, end - begin));
          return part;
        });
    return {penalty, largest};
  }

  /// The first element whose gradient is not finite, or -1.
  std::int64_t badGradient(const Tensor& gradients) const {
    const float* const g = gradients.data<float>();
    std::int64_t first = -1;
    for (const auto& range : ranges_)
      for (std::int64_t i = range.begin; i < range.end; ++i)
        if (!std::isfinite(g[i]) && (first < 0 || i < first)) first = i;
    return first;
  }

  float clipLimit() const {
    return settings_.clipValue > 0 ? static_cast<float>(settings_.clipValue)
                                   : std::numeric_limits<float>::infinity();
  }

  struct Scan {
    double normScale = 1;  // from clipping by norm
    double largest = 0;    // magnitude of the gradient, or a bound; not finite if an element is not
  };

  Scan scan(const Tensor& gradients, const StepNumbers& step) const {
    if (settings_.clipNorm == 0) {
      std::atomic<std::int32_t> largest{0};
      const float* const g = gradients.data<float>();
      sumOverChunks(ranges_, context_, [&](const UpdateRange&, std::int64_t begin, std::int64_t end) {
        raiseTo(largest, dispatch<largestMagnitude<float>>(g + begin, end - begin));
        return 0.0;
      });
      return {.largest = std::bit_cast<float>(largest.load())};
    }
    double squares = 0;
    for (const auto& range : ranges_)
      squares += cpu::squaredNorm(gradients, range.begin, range.end, context_);
    const double norm = step.gradientScale * std::sqrt(squares);
    return {.normScale = norm > settings_.clipNorm ? settings_.clipNorm / norm : 1,
            .largest = std::sqrt(squares)};
  }

  /// Whether all numbers that the rule computes are certain to stay within float32.
  /// @param gradient  the gradient's largest magnitude, scaled.
  template <typename Rule>
  bool staysFinite(const Rule& rule, const StepNumbers& step, double gradient) const {
    if constexpr (requires { rule.bounds(gradient, gradient); }) {
      const double before = 0x1p20 * static_cast<double>(largest_);  // margin for writes by merges and users
      const double clipped = std::min(gradient, static_cast<double>(clipLimit()));
      return gradient < kSafe && std::ranges::all_of(ranges_, [&](const UpdateRange& range) {
               const double g = clipped + range.l1 + range.l2 * before;
               const auto bounds = rule.bounds(g, before);
               const double learningRate = std::abs(step.learningRate * range.learningRate);
               const double moved = learningRate * (bounds.step + range.weightDecay * before);
               return g < kSafe && bounds.states < kSafe && before + moved < kSafe;  // false for NaN, too
             });
    }
    return false;
  }

  static constexpr double kSafe = 0x1p126;  // almost 4 times below the largest float32, for rounding errors
  static constexpr double kRefused = std::numeric_limits<double>::quiet_NaN();

  UpdateSettings settings_;
  std::vector<UpdateRange> ranges_;
  Context& context_;
  float largest_ = 0;              // largest magnitude that the last update wrote
  const void* updated_ = nullptr;  // the parameters of the last update
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
