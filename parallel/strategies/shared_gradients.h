#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/parallel/strategies/strategy.h"
#include "muster/parallel/strategies/threshold_rule.h"

namespace muster {

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

  /// @throws InvalidArgument naming the option and its value.
  void validate() const;
  std::unique_ptr<Strategy> make() const;

  void fields(Fields& f);
  static std::vector<NamedStrategy> named(int workers);
  /// As in "adaptive threshold from 0.0001".
  std::string describe() const;
};

}  // namespace muster
