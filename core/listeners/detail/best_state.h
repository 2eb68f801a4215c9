#pragma once

#include <string>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster::detail {

/// A copy of a model's state on the CPU, the best of a training so far: blocks without gradients, the
/// strategy's state and the score.
class BestState {
 public:
  /// Whether there is a copy; false after a copy that failed halfway.
  bool whole() const { return whole_; }
  /// The model's, when it was copied.
  double score() const { return score_; }
  void setScore(double score) { score_ = score; }

  /// Copies the model's state. @return whether the copies are in other memory than before.
  bool take(Model& model);
  /// Copies it back to the model that it was taken or read from.
  void giveBack(Model& model) const;

  /// Puts the copies, not their values, into a model's listener state, under names with this prefix.
  /// Allocates nothing if they are there.
  void putInto(TrainingState& state, const std::string& prefix) const;
  /// Takes over the copies that `putInto` has put into the model's listener state, with values that may be on
  /// the model's device. @return false if one is missing or has another shape; there is no copy then.
  bool read(Model& model, const std::string& prefix);

 private:
  std::vector<Tensor> state_;        // the model's blocks without gradients
  std::vector<NamedValues> copies_;  // of these blocks, by name
  std::vector<NamedValues> strategyState_;
  double score_ = 0;
  bool whole_ = false;
};

}  // namespace muster::detail
