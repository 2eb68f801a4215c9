#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "muster/core/optim/state_block.h"
#include "muster/core/optim/updater.h"

namespace muster {

/// How a model is trained, beside its architecture.
struct TrainingOptions {
  Updater updater = {};
  double l1 = 0;           ///< adds l1 sign(w) to the gradients of weights, l1 |w| to the score
  double l2 = 0;           ///< adds l2 w to the gradients of weights, l2/2 |w|^2 to the score
  double weightDecay = 0;  ///< decoupled, with every updater: weights lose lr * weightDecay * w
  double clipNorm = 0;     ///< 0: off. Scales the whole gradient down to this Euclidean norm
  double clipValue = 0;    ///< 0: off. Clamps each element to [-clipValue, clipValue], after clipNorm

  void fields(Fields& f);
  /// @throws InvalidArgument naming the option that is negative or not finite.
  void validate() const;
};

/// Applies an updater to a parameter block, and owns the updater's state blocks.
///
/// Order within a step: clip by norm, clip by value, add L1 and L2, update, decay. The norm is that of the
/// loss's gradient over all segments that are not frozen. Frozen segments and padding are never touched.
class Optimizer {
 public:
  /// @param parameters  the block that `apply` will be given, or one with the same segments.
  Optimizer(TrainingOptions options, const StateBlock& parameters);

  /// One update. Allocates nothing. @return the regularisation penalty at the parameters from before.
  double apply(StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
               std::int64_t epoch, Context& context);

  /// sum(l1 |w| + l2/2 w^2) over the regularised segments that are not frozen, in float64: what `apply` would
  /// return.
  double penalty(const StateBlock& parameters, Context& context) const;

  const TrainingOptions& options() const { return options_; }
  /// The updater's state, kind UpdaterState, rule Average, named after `Updater::stateNames()`, with the
  /// parameters' segments.
  std::span<StateBlock> state() { return state_; }
  std::span<const StateBlock> state() const { return state_; }

 private:
  /// What clipping by norm multiplies the gradient by.
  float clipScale(const Tensor& gradients, Context& context) const;

  TrainingOptions options_;
  std::vector<StateBlock> state_;
  std::vector<UpdateRange> ranges_;    // settings without the learning rate's factor
  std::vector<double> learningScale_;  // [range] learning-rate scale of the range's segments
};

}  // namespace muster
