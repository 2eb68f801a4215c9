#pragma once

#include "muster/core/optim/optimizer.h"
#include "tests/support/standard.h"

namespace muster::test {

/// The library's updaters in float64, element by element, from the formulas in core/ops/update.h and the
/// order of a step in core/optim/optimizer.h. Shares options and schedules with the library, but no computing
/// code.
class ReferenceUpdater {
 public:
  /// @param parameters  a float64 block; the state gets its segments.
  /// @throws InvalidArgument for an updater that is not one of the library's.
  ReferenceUpdater(const TrainingOptions& options, const StateBlock& parameters);

  /// One update of the float64 `parameters`. @return the penalty from before it.
  double apply(StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
               std::int64_t epoch);

  /// State blocks, with the updater's names.
  std::span<StateBlock> state() { return state_; }

 private:
  /// The factor of clipping by norm.
  double clipScale(const StateBlock& gradients) const;
  /// Computes the decrease of parameter i for its clipped and regularised gradient; updates the state.
  double step(std::int64_t i, double gradient, double learningRate, std::int64_t iteration);
  /// A field of the updater, for example "momentum". @throws InvalidArgument if it has none of that name.
  double option(std::string_view name) const;

  TrainingOptions options_;
  std::map<std::string, double, std::less<>> rule_;  // the updater's fields, but for the learning rate
  std::vector<StateBlock> state_;
};

}  // namespace muster::test
