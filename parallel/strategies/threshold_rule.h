#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "muster/core/base/fields.h"

namespace muster {

/// Always the same threshold.
struct FixedThreshold {
  double threshold = 1e-3;  ///< in units of a parameter
};

/// Adapts the threshold until the density of a message, its share of the elements, is in a range: multiplies
/// it by `decay` after each message below the range, and divides by it after each above. (Deeplearning4j's
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
/// How the threshold of shared gradients is chosen.
using ThresholdAlgorithm = std::variant<FixedThreshold, AdaptiveThreshold, TargetDensityThreshold>;

/// @throws InvalidArgument naming the option of the algorithm that is out of range.
void validate(const ThresholdAlgorithm& algorithm);
/// Visits the algorithm as one field called `name`: fixed, adaptive or target, with its options inside.
void field(std::string_view name, ThresholdAlgorithm& algorithm, Fields& fields);
/// As in "adaptive threshold from 0.0001".
std::string describe(const ThresholdAlgorithm& algorithm);

/// A sender's threshold, adapted after each message.
class ThresholdRule {
 public:
  explicit ThresholdRule(const ThresholdAlgorithm& algorithm);
  double threshold() const { return threshold_; }
  void setThreshold(double threshold) { threshold_ = threshold; }
  /// Whether an algorithm can have come to this threshold.
  static bool possible(double threshold);
  /// @param density  share of the elements that the last message held.
  void adapt(double density);

 private:
  double threshold_, minDensity_ = 0, maxDensity_ = 1, decay_ = 1;
};

}  // namespace muster
