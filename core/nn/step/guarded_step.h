#pragma once

#include "muster/core/data/batch.h"
#include "muster/core/nn/step/kept_statistics.h"
#include "muster/core/nn/step_ticket.h"

namespace muster {
class Model;
}

namespace muster::detail {

/// A model's step that computes at once: gradient, checks that all of it is finite, update. After an
/// exception the statistics are as they were before, and `update` was not called, unless it threw.
class GuardedStep {
 public:
  /// @param checksGradient  whether the gradient is checked here; an Optimizer checks it itself.
  /// @return the score with the penalty. @throws NonFiniteScore, naming the value of the batch that is not
  ///         finite, if there is one; what the model throws.
  StepScore run(Model& model, const Batch& batch, bool checksGradient);

 private:
  KeptStatistics statistics_;
};

}  // namespace muster::detail
