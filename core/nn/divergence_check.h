#pragma once

#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/model.h"

namespace muster {

/// Recognises a training that has diverged although all its numbers are finite. It keeps a few training
/// examples and compares the model's mean loss on them, without penalties such as l2, with its loss before
/// the training and with that of a constant prediction.
class DivergenceCheck {
 public:
  /// Reads the first 64 examples, or as many as there are, and computes the model's loss on them, after what
  /// Model::fitBeforeTraining fits.
  /// @param model  initialised, before the training.
  /// @param data  of the training, which reads it later.
  DivergenceCheck(Model& model, DataSetIterator& data);

  /// @throws NonFiniteScore if the loss is more than twice as large as before the training and as
  /// that of a constant prediction, or is not a number. A loss that fell is never a divergence. Running
  /// statistics that lag behind after a few steps are none either: such a loss is computed again with the
  /// statistics of the examples.
  void requireNone(Model& model) const;

  /// The loss of a constant prediction: for classes log(classes), for labels 0 and 1 log(2), for other
  /// numbers their mean square, which is that of the prediction 0.
  double constant() const { return constant_; }

 private:
  double lossOf(Model& model) const;
  double lossWithOwnStatistics(Model& model) const;

  std::vector<Batch> batches_;
  double before_ = 0, constant_ = 0;
};

}  // namespace muster
