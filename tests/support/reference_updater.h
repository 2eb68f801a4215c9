#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/optim/optimizer.h"

namespace muster::test {

/// The library's updaters once more, in float64 and element by element, from the formulas in
/// core/ops/update.h and the order within a step that core/optim/optimizer.h documents. The options and the
/// schedules are the library's own objects; nothing of its computing code is used.
class ReferenceUpdater {
 public:
  /// @param parameters  a float64 block; the state gets its segments.
  /// @throws InvalidArgument for an updater that is not one of the library's.
  ReferenceUpdater(const TrainingOptions& options, const StateBlock& parameters);

  /// One update of the float64 `parameters`. @return the penalty from before it.
  double apply(StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
               std::int64_t epoch);

  /// Named as the updater names them.
  std::span<StateBlock> state() { return state_; }

 private:
  /// What clipping by norm multiplies the gradient by.
  double clipScale(const StateBlock& gradients) const;
  /// What parameter i loses by its gradient, which is clipped and regularised; moves the state on.
  double step(std::int64_t i, double gradient, double learningRate, std::int64_t iteration);
  /// A field of the updater: "momentum". @throws InvalidArgument if it has none of that name.
  double option(std::string_view name) const;

  TrainingOptions options_;
  std::map<std::string, double, std::less<>> rule_;  // the updater's fields, but for the learning rate
  std::vector<StateBlock> state_;
};

}  // namespace muster::test
