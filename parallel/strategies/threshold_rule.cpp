#include "muster/parallel/strategies/threshold_rule.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster {
namespace {

// Beyond these a threshold sends everything or nothing, and its powers would leave float32.
constexpr double kLeast = 1e-30, kMost = 1e30;

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // Clang 16 does not deduce it

void requireThreshold(double threshold, std::string_view name) {
  require(std::isfinite(threshold) && threshold >= kLeast && threshold <= kMost,
          "thresholdAlgorithm: {} must lie between {} and {}, got {}", name, kLeast, kMost, threshold);
}

void requireDensity(double density, std::string_view name) {
  require(density > 0 && density <= 1, "thresholdAlgorithm: {} must be above 0 and at most 1, got {}", name,
          density);
}

void requireDecay(double decay) {
  require(decay > 0 && decay < 1, "thresholdAlgorithm: decay must lie between 0 and 1, got {}", decay);
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

void ThresholdRule::adapt(double density) {
  if (density < minDensity_) threshold_ = std::max(kLeast, threshold_ * decay_);
  if (density > maxDensity_) threshold_ = std::min(kMost, threshold_ / decay_);
}

}  // namespace muster
