#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace muster {

/// Always the same threshold.
struct FixedThreshold {
  double threshold = 1e-3;  ///< in units of a parameter
};

/// Seeks a threshold at which the share of elements that a message holds, its density, lies in a range: it is
/// multiplied by `decay` after each message below, and divided by it after each above. (Deeplearning4j's
/// AdaptiveThresholdAlgorithm, which calls the density sparsity; its defaults are 1e-4, 1e-4 to 1e-2. A
/// message here is never longer than a map of two bits an element, so more may be sent.)
struct AdaptiveThreshold {
  double initial = 1e-3;
  double minDensity = 1e-3;
  double maxDensity = 0.1;
  double decay = 0.9659363289248456;  ///< 0.5^(1/20): halved within 20 messages
};

/// Seeks one density: an AdaptiveThreshold whose range is a point.
struct TargetDensityThreshold {
  double initial = 1e-3;
  double density = 0.05;
  double decay = 0.9659363289248456;
};

using ThresholdAlgorithm = std::variant<FixedThreshold, AdaptiveThreshold, TargetDensityThreshold>;

/// What TrainingMode::SharedGradients can be told.
struct SharedGradientsOptions {
  ThresholdAlgorithm thresholdAlgorithm = AdaptiveThreshold{};
  /// Every `residualClippingFrequency` messages a residual is clamped to plus or minus this many thresholds.
  /// 0: never, so that nothing is lost.
  double residualClipping = 0;
  /// Messages between clippings; nothing without `residualClipping`.
  std::int64_t residualClippingFrequency = 5;
  /// Iterations between resynchronisations. 0: at the end of each epoch only. Where the threshold is small
  /// beside the updates, residuals grow until the next one.
  std::int64_t resynchronizationFrequency = 100;

  /// @throws InvalidArgument naming the option and its value.
  void validate() const;
  /// As in "adaptive threshold from 0.0001".
  std::string describe() const;
};

/// A sender's threshold, message by message.
class ThresholdRule {
 public:
  explicit ThresholdRule(const ThresholdAlgorithm& algorithm);
  float threshold() const { return static_cast<float>(threshold_); }
  /// @param density  share of the elements that the message with this threshold held.
  void adapt(double density);

 private:
  double threshold_, minDensity_ = 0, maxDensity_ = 1, decay_ = 1;
};

}  // namespace muster
