#include <algorithm>
#include <string_view>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/shared_gradients.h"

namespace muster {
namespace {

constexpr double kMostClipping = 1e6;  // in thresholds
// Outside this range a threshold sends everything or nothing, and its powers leave the range of float32.
constexpr double kLeastThreshold = 1e-30, kMostThreshold = 1e30;

void requireThreshold(std::string_view name, double threshold) {
  require(detail::isThreshold(threshold), "thresholdAlgorithm: {} must be between {} and {}, got {}", name,
          kLeastThreshold, kMostThreshold, threshold);
}

void requireDensity(std::string_view name, double density) {
  require(density > 0 && density <= 1, "thresholdAlgorithm: {} must be above 0 and at most 1, got {}", name,
          density);
}

void checkAlgorithm(const FixedThreshold& fixed) {
  requireThreshold("threshold", fixed.threshold);
}
template <typename T>
void checkAlgorithm(const T& moving) {
  requireThreshold("initial", moving.initial);
  if constexpr (requires { moving.density; }) {
    requireDensity("density", moving.density);
  } else {
    requireDensity("minDensity", moving.minDensity);
    requireDensity("maxDensity", moving.maxDensity);
    require(moving.minDensity <= moving.maxDensity,
            "thresholdAlgorithm: minDensity ({}) is above maxDensity ({})", moving.minDensity,
            moving.maxDensity);
  }
  require(moving.decay > 0 && moving.decay < 1, "thresholdAlgorithm: decay must be between 0 and 1, got {}",
          moving.decay);
}

void thresholdFields(Fields& f, FixedThreshold& fixed) {
  f.field("threshold", fixed.threshold, "the size from which an element is sent", "[1e-30, 1e30]");
}
template <typename T>
void thresholdFields(Fields& f, T& moving) {
  f.field("initial", moving.initial, "the threshold at the beginning", "[1e-30, 1e30]");
  if constexpr (requires { moving.density; }) {
    f.field("density", moving.density, "share of the elements to send", "(0, 1]");
  } else {
    f.field("minDensity", moving.minDensity, "share of the elements below which the threshold falls",
            "(0, 1]");
    f.field("maxDensity", moving.maxDensity, "share of the elements above which the threshold rises",
            "(0, 1]");
  }
  f.field("decay", moving.decay, "factor by which the threshold changes after a message", "(0, 1)");
}

}  // namespace

AdaptiveThreshold detail::asAdaptive(const ThresholdAlgorithm& algorithm) {
  if (const auto* fixed = std::get_if<FixedThreshold>(&algorithm))
    return {.initial = fixed->threshold, .minDensity = 0, .maxDensity = 1};
  if (const auto* target = std::get_if<TargetDensityThreshold>(&algorithm))
    return {target->initial, target->density, target->density, target->decay};
  return std::get<AdaptiveThreshold>(algorithm);
}

double detail::adaptedThreshold(const AdaptiveThreshold& rule, double threshold, double density) {
  if (density < rule.minDensity) return std::max(kLeastThreshold, threshold * rule.decay);
  if (density > rule.maxDensity) return std::min(kMostThreshold, threshold / rule.decay);
  return threshold;
}

bool detail::isThreshold(double threshold) {
  return threshold >= kLeastThreshold && threshold <= kMostThreshold;  // false for NaN
}

void SharedGradients::validate() const {
  std::visit([](const auto& algorithm) { checkAlgorithm(algorithm); }, thresholdAlgorithm);
  muster::validate(updaterState);
  require(residualClipping == 0 || (residualClipping >= 1 && residualClipping <= kMostClipping),
          "residualClipping must be 0 (off) or between 1 and {} thresholds, got {}", kMostClipping,
          residualClipping);
  require(residualClippingFrequency >= 1, "residualClippingFrequency must be at least 1, got {}",
          residualClippingFrequency);
  require(resynchronizationFrequency >= 0, "resynchronizationFrequency cannot be negative, got {}",
          resynchronizationFrequency);
}

void SharedGradients::fields(Fields& f) {
  f.describe("how the size is chosen from which elements are sent: fixed, adaptive or target");
  detail::variantField(f, "threshold", thresholdAlgorithm, {"fixed", "adaptive", "target"},
                       [](Fields& inside, auto& chosen) { thresholdFields(inside, chosen); });
  f.field("residualClipping", residualClipping,
          "clips what was not sent to so many thresholds, at least 1; 0: never", "[0, 1e6]");
  f.field("residualClippingFrequency", residualClippingFrequency, "messages between clippings", "[1, )");
  f.field("resynchronizationFrequency", resynchronizationFrequency,
          "iterations between merges of all that was not sent; 0: at the end of each epoch only", "[0, )");
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
}

std::vector<NamedStrategy> SharedGradients::named(int) {
  return {{"shared", "every iteration each worker sends the large elements of its update", "Strom 2015",
           SharedGradients{}}};
}

}  // namespace muster
