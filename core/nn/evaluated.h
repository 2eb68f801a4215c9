#pragma once

#include <optional>

#include "muster/core/nn/task.h"

namespace muster {

class AnyEvaluation;
class BinaryEvaluation;
class DataSetIterator;
class Evaluation;
class RegressionEvaluation;

/// Evaluates predictions for a data set: by what is predicted, or as a given task. Source: core/eval.
class Evaluated {
 public:
  virtual ~Evaluated() = default;

  /// By what is predicted (`task()`), or the given task.
  virtual AnyEvaluation evaluateTask(DataSetIterator& data, std::optional<Task> task = {}) = 0;
  /// Counts the predictions of a classifier.
  Evaluation evaluate(DataSetIterator& data);
  /// Of an output that predicts numbers: mean squared error, R2 and others of each.
  RegressionEvaluation evaluateRegression(DataSetIterator& data);
  /// Of labels that are 0 or 1, one or several sigmoid outputs: area under the ROC curve and others.
  BinaryEvaluation evaluateBinary(DataSetIterator& data);
};

}  // namespace muster
