#pragma once

#include <optional>

#include "muster/core/nn/task.h"

namespace muster {

class AnyEvaluation;
class BinaryEvaluation;
class DataSetIterator;
class Evaluation;
class RegressionEvaluation;

/// The common base of Network, ParallelWrapper and Trainer, which evaluate a model's predictions for a data
/// set. The three below `evaluateTask` call it. Used by one thread at a time. Source: core/eval.
class Evaluated {
 public:
  virtual ~Evaluated() = default;

  /// Runs the model over all batches of `data`, whose iterator is reset to epoch 0 first, and compares its
  /// predictions with the labels (Model::outputName): by the model's own task (Model::task), with its own
  /// loss, or by the given one.
  /// @throws InvalidArgument if there are no batches, a training reads the iterator, or labels and predictions
  ///         do not match, naming the batch; NonFinitePrediction; what the iterator throws.
  virtual AnyEvaluation evaluateTask(DataSetIterator& data, std::optional<Task> task = {}) = 0;
  /// Counts the predictions of a classifier. @throws as `evaluateTask`.
  Evaluation evaluate(DataSetIterator& data);
  /// Gives mean squared error, R2 and others of each number that the model predicts. @throws as
  /// `evaluateTask`.
  RegressionEvaluation evaluateRegression(DataSetIterator& data);
  /// Gives the area under the ROC curve and others of each label that is 0 or 1, for one or several sigmoid
  /// outputs. @throws as `evaluateTask`.
  BinaryEvaluation evaluateBinary(DataSetIterator& data);
};

}  // namespace muster
