#include "muster/parallel/strategies/threshold_rule.h"

#include <algorithm>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/option_fields.h"

namespace muster {
namespace {

// Outside this range a threshold sends everything or nothing, and its powers leave the range of float32.
constexpr double kLeast = 1e-30, kMost = 1e30;

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // Clang 16 does not deduce it

void requireThreshold(double threshold, std::string_view name) {
  require(ThresholdRule::possible(threshold), "thresholdAlgorithm: {} must be between {} and {}, got {}",
          name, kLeast, kMost, threshold);
}

void requireDensity(double density, std::string_view name) {
  require(density > 0 && density <= 1, "thresholdAlgorithm: {} must be above 0 and at most 1, got {}", name,
          density);
}

void requireDecay(double decay) {
  require(decay > 0 && decay < 1, "thresholdAlgorithm: decay must be between 0 and 1, got {}", decay);
}

void fieldsOf(Fields& f, FixedThreshold& fixed) {
  f.field("threshold", fixed.threshold, "the size from which an element is sent");
}
void fieldsOf(Fields& f, AdaptiveThreshold& adaptive) {
  f.field("initial", adaptive.initial, "the threshold at the beginning");
  f.field("minDensity", adaptive.minDensity, "share of the elements below which the threshold falls");
  f.field("maxDensity", adaptive.maxDensity, "share of the elements above which the threshold rises");
  f.field("decay", adaptive.decay, "factor by which the threshold changes after a message");
}
void fieldsOf(Fields& f, TargetDensityThreshold& target) {
  f.field("initial", target.initial, "the threshold at the beginning");
  f.field("density", target.density, "share of the elements to send");
  f.field("decay", target.decay, "factor by which the threshold changes after a message");
}

}  // namespace

void validate(const ThresholdAlgorithm& algorithm) {
  std::visit(Overloaded{[](const FixedThreshold& t) { requireThreshold(t.threshold, "threshold"); },
                        [](const AdaptiveThreshold& t) {
                          requireThreshold(t.initial, "initial");
                          requireDensity(t.minDensity, "minDensity");
                          requireDensity(t.maxDensity, "maxDensity");
                          require(t.minDensity <= t.maxDensity,
                                  "thresholdAlgorithm: minDensity ({}) is above maxDensity ({})",
                                  t.minDensity, t.maxDensity);
                          requireDecay(t.decay);
                        },
                        [](const TargetDensityThreshold& t) {
                          requireThreshold(t.initial, "initial");
                          requireDensity(t.density, "density");
                          requireDecay(t.decay);
                        }},
             algorithm);
}

std::string describe(const ThresholdAlgorithm& algorithm) {
  return std::visit(
      Overloaded{
          [](const FixedThreshold& t) { return fmt::format("threshold {}", t.threshold); },
          [](const AdaptiveThreshold& t) { return fmt::format("adaptive threshold from {}", t.initial); },
          [](const TargetDensityThreshold& t) {
            return fmt::format("threshold for a density of {}", t.density);
          }},
      algorithm);
}

ThresholdRule::ThresholdRule(const ThresholdAlgorithm& algorithm) {
  std::visit(Overloaded{[this](const FixedThreshold& t) { threshold_ = t.threshold; },
                        [this](const AdaptiveThreshold& t) {
                          threshold_ = t.initial;
                          minDensity_ = t.minDensity;
                          maxDensity_ = t.maxDensity;
                          decay_ = t.decay;
                        },
                        [this](const TargetDensityThreshold& t) {
                          threshold_ = t.initial;
                          minDensity_ = maxDensity_ = t.density;
                          decay_ = t.decay;
                        }},
             algorithm);
}

bool ThresholdRule::possible(double threshold) {
  return threshold >= kLeast && threshold <= kMost;  // false for NaN
}

void ThresholdRule::adapt(double density) {
  if (density < minDensity_) threshold_ = std::max(kLeast, threshold_ * decay_);
  if (density > maxDensity_) threshold_ = std::min(kMost, threshold_ / decay_);
}

void field(std::string_view name, ThresholdAlgorithm& algorithm, Fields& fields) {
  fields.describe("how the size is chosen from which elements are sent: fixed, adaptive or target");
  detail::variantField(fields, name, algorithm, {"fixed", "adaptive", "target"},
                       [](Fields& f, auto& chosen) { fieldsOf(f, chosen); });
}

}  // namespace muster
