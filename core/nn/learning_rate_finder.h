#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster {

/// The learning rates that `findLearningRate` tries.
struct LearningRateRange {
  double lowest = 1e-7, highest = 10;
  std::int64_t steps = 100;  ///< at least 10
  double smoothing = 0.9;    ///< of the score's moving average, in [0, 1)
  double divergence = 4;     ///< stops when the average exceeds this multiple of its minimum
};

/// The result of the test. `rates` and `scores` have one element per step, up to the step that diverged.
struct LearningRateCurve {
  std::vector<double> rates;   ///< of each step
  std::vector<double> scores;  ///< the moving average, bias corrected
  /// Where the average falls fastest by the logarithm of the rate, from a quarter of its fall on, so that the
  /// noise before it does not count; nothing if it never falls.
  std::optional<double> suggestion = {};
  bool diverged = false;
};

/// Trains a copy of the model for some steps, the learning rate growing by a constant factor from step to
/// step, to find a rate to train with. The model keeps its state; without parameters it is prepared for the
/// first batch. The copy has the model's updater (without its schedule), regularisation, `accumulate` and
/// learning-rate factors of layers.
/// @param data  is reset, from epoch 0 on, as often as the steps need.
/// @throws InvalidArgument for numbers out of range, a model that updates itself, or data without batches or
///         that a training reads; NonFiniteScore if the score is NaN or infinite before the first step.
/// Source: Smith 2017, "Cyclical learning rates for training neural networks", section 3.3.
LearningRateCurve findLearningRate(Model& model, DataSetIterator& data, const LearningRateRange& range = {});

}  // namespace muster
