#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/core/tensor/tensor.h"

namespace muster {

struct Batch;
class DataSetIterator;
class Model;

/// How well a classifier predicts: counts of (true class, predicted class), and what follows from them.
///
/// The counts are whole numbers and do not depend on how the examples were split into batches. The predicted
/// class is the one with the largest prediction, the first of several equal ones.
///
/// A quotient 0/0 counts as 0, as in scikit-learn with `zero_division=0`; macro means are over all classes,
/// and macro F1 is the mean of the classes' F1, also as there. (Deeplearning4j leaves classes with 0/0 out of
/// its means.)
class Evaluation {
 public:
  /// @throws InvalidArgument for fewer than two classes.
  explicit Evaluation(std::int64_t classes);

  /// Counts a batch. A prediction at each time step, [N, T, classes], counts as N * T examples: "[N]" below
  /// is [N, T] then, and steps whose mask is 0 are left out.
  ///
  /// @param predictions  float32 [N, classes], larger is likelier; or, for two classes, [N, 1]: class 1 where
  ///        the prediction is above 0.5.
  /// @param labels  int64 [N], class indices; or float32 one-hot rows [N, classes], for predictions [N, 1]
  ///        also rows [N, 1] of 0 or 1.
  /// @param mask  float32 [N], where it is defined: examples with 0 are left out.
  /// @throws InvalidArgument naming the shapes that do not fit, or the example whose label is no class or
  ///         whose predictions are NaN. Nothing of that batch is counted then.
  void add(const Tensor& predictions, const Tensor& labels, const Tensor& mask = {});
  /// Adds the counts of another evaluation. @throws InvalidArgument if it has other classes.
  void merge(const Evaluation& other);

  std::int64_t classes() const { return classes_; }
  std::int64_t examples() const { return examples_; }
  /// Examples of class `actual` that were predicted as `predicted`.
  std::int64_t count(std::int64_t actual, std::int64_t predicted) const;
  /// [actual * classes + predicted]
  const std::vector<std::int64_t>& confusionMatrix() const { return confusion_; }

  /// Share of the examples whose class was predicted.
  double accuracy() const { return topKAccuracy(1); }
  /// Share of the examples whose class is among the `k` with the largest predictions. Of equal predictions
  /// the lower class comes first. @throws InvalidArgument for k < 1.
  double topKAccuracy(std::int64_t k) const;

  /// Of the examples predicted as this class, the share that is of it.
  double precision(std::int64_t ofClass) const;
  /// Of the examples of this class, the share predicted as it.
  double recall(std::int64_t ofClass) const;
  /// The harmonic mean of precision and recall.
  double f1(std::int64_t ofClass) const;
  /// Macro means over the classes.
  double precision() const;
  double recall() const;
  double f1() const;

  /// Tables for people: the scores, those of each class, and the confusion matrix.
  std::string summary() const;

  bool operator==(const Evaluation&) const = default;

 private:
  void requireClass(std::int64_t index) const;

  std::int64_t classes_;
  std::int64_t examples_ = 0;
  std::vector<std::int64_t> confusion_;  // [actual * classes + predicted]
  std::vector<std::int64_t> ranks_;      // [r] examples with r classes before their own
};

/// Runs `model` over a batch and counts what it predicts; the first batch makes the evaluation. A part of
/// `evaluate`, for those who go through the batches themselves.
/// @throws InvalidArgument if labels and predictions do not fit. Nothing of the batch is counted then.
void evaluateBatch(Model& model, const Batch& batch, std::optional<Evaluation>& evaluation);

/// Runs `model` over all batches of `data`, from its start (epoch 0).
/// @throws InvalidArgument if there are no batches, or labels and predictions do not fit.
Evaluation evaluate(Model& model, DataSetIterator& data);

}  // namespace muster
