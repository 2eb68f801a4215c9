#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/parallel/strategies/strategy.h"

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

/// Every iteration each worker sends the large elements of its update, as plus or minus its threshold, and
/// all apply the weighted mean of these messages to the same parameters, which stay equal. What a worker has
/// not sent, its residual, is added to its next updates. Each worker has its own updater state. One worker
/// sends nothing and takes plain steps. The parameters must be float32, and at most 2^31 - 1.
///
/// A resynchronisation sends the residuals in full and averages updater states and statistics; workers are
/// weighted by what they have trained since the last one. It comes at the end of each epoch, at a stop, and
/// every `resynchronizationFrequency` iterations. Between two of them the merged copy holds the current
/// parameters, and the updater state and statistics of the last resynchronisation.
///
/// The mean of the messages is applied, not their sum, so learning rates are those of synchronous gradients.
/// Source: Strom 2015; the residual is the error feedback of Seide et al. 2014.
struct SharedGradients {
  ThresholdAlgorithm thresholdAlgorithm = AdaptiveThreshold{};
  /// Every `residualClippingFrequency` messages a residual is clamped to plus or minus this many thresholds.
  /// 0: never, so that nothing is lost.
  double residualClipping = 0;
  /// Messages between clippings; without effect unless `residualClipping` is given.
  std::int64_t residualClippingFrequency = 5;
  /// Iterations between resynchronisations. 0: at the end of each epoch only. If the threshold is small
  /// relative to the updates, residuals grow until the next one.
  std::int64_t resynchronizationFrequency = 100;
  /// What a resynchronisation does with the updater's state.
  UpdaterState updaterState = UpdaterState::Average;

  void validate() const;
  std::unique_ptr<Strategy> make() const;
  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
};

namespace detail {

/// The algorithm as an adaptive one: no density leaves the range of a fixed threshold.
AdaptiveThreshold asAdaptive(const ThresholdAlgorithm& algorithm);
/// The threshold after a message that held this share of the elements.
double adaptedThreshold(const AdaptiveThreshold& rule, double threshold, double density);
/// Whether an algorithm can have come to this threshold.
bool isThreshold(double threshold);

}  // namespace detail

}  // namespace muster
