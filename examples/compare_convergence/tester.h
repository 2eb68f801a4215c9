#pragma once

#include "muster/core/data/batch.h"
#include "muster/core/nn/model.h"
#include "muster/datasets/image_set_iterator.h"

namespace convergence {

struct TestResult {
  double accuracy = 0;  ///< share of the images whose class was predicted
  double loss = 0;      ///< mean of -log p(class)
};

/// Tests models on one data set. One thread at a time.
class Tester {
 public:
  /// @param images  are gone over from the first one each time.
  explicit Tester(muster::ImageSetIterator images);

  /// @throws NonFiniteScore for a model that predicts no numbers; InvalidArgument for one whose predictions
  /// do not fit the labels.
  TestResult test(muster::Model& model);

 private:
  muster::ImageSetIterator images_;
  muster::Batch batch_;
  muster::Tensor predictions_;
};

}  // namespace convergence
