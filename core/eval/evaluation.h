#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/core/tensor/tensor.h"

namespace muster {

struct Batch;
class DataSetIterator;
class Model;

/// Evaluates a classifier: counts (true class, predicted class), and computes scores from these counts.
///
/// The counts and the sum of the losses are whole numbers: they do not depend on the order of the examples,
/// nor on how they were split into batches and over workers. The predicted class is the one with the largest
/// prediction, the first of equal ones.
///
/// 0/0 is 0, as in scikit-learn with `zero_division=0`; macro means are over the classes that occur in the
/// data or the predictions, that of F1 over their F1. (Deeplearning4j leaves out all classes with 0/0.)
class Evaluation {
 public:
  /// @throws InvalidArgument for fewer than two classes.
  explicit Evaluation(std::int64_t classes);

  /// Counts a batch. For predictions of sequences, [N, T, classes], read [N, T] for [N] below: each time step
  /// is an example; steps whose mask is 0 are left out.
  ///
  /// @param predictions  float32 [N, classes], larger is likelier; or, for two classes, [N, 1]: class 1 if
  ///         the prediction is above 0.5.
  /// @param labels  int64 [N], class indices; or float32 one-hot rows [N, classes]; for predictions [N, 1]
  ///         also rows [N, 1] of 0 or 1.
  /// @param mask  float32 [N], if defined: examples with 0 are left out.
  /// @throws InvalidArgument naming shapes that do not match, or the example with an invalid label or NaN
  ///         predictions. Nothing of that batch is counted then.
  void add(const Tensor& predictions, const Tensor& labels, const Tensor& mask = {});
  /// Adds the counts of another evaluation. @throws InvalidArgument if it has another number of classes.
  void merge(const Evaluation& other);

  /// Names the classes for `summary`. Not part of `toNumbers`.
  /// @throws InvalidArgument for another number of names.
  void setClassNames(std::vector<std::string> names);
  /// [class] or empty
  const std::vector<std::string>& classNames() const { return names_; }

  std::int64_t classes() const { return classes_; }
  std::int64_t examples() const { return examples_; }
  /// Number of examples of class `actual` predicted as `predicted`.
  std::int64_t count(std::int64_t actual, std::int64_t predicted) const;
  /// [actual * classes + predicted]
  const std::vector<std::int64_t>& confusionMatrix() const { return confusion_; }

  /// Share of examples whose class was predicted.
  double accuracy() const { return topKAccuracy(1); }
  /// Share of examples whose class is among the `k` largest predictions. Among equal predictions the lower
  /// class comes first. @throws InvalidArgument for k < 1.
  double topKAccuracy(std::int64_t k) const;

  /// Mean over the examples of -log p, where p is the probability predicted for the true class (the
  /// cross-entropy, from softmax or sigmoid outputs). A p that was rounded to 0 counts as the smallest normal
  /// float. Each loss is rounded to a multiple of 2^-40. NaN if a prediction for a true class was not in [0,
  /// 1] (logits, for example).
  double loss() const;

  /// Share of examples predicted as this class that belong to it.
  double precision(std::int64_t ofClass) const;
  /// Share of examples of this class predicted as it.
  double recall(std::int64_t ofClass) const;
  /// The harmonic mean of precision and recall.
  double f1(std::int64_t ofClass) const;
  /// Macro means over the classes.
  double precision() const;
  double recall() const;
  double f1() const;

  /// Tables to read: the scores, those of each class, and the confusion matrix.
  std::string summary() const;

  bool operator==(const Evaluation&) const = default;

  /// All that was counted, for processes that evaluate together: as many numbers for as many classes.
  std::vector<std::int64_t> toNumbers() const;
  /// The reverse. @throws InvalidArgument for numbers that are no evaluation's.
  static Evaluation fromNumbers(std::span<const std::int64_t> numbers);

 private:
  /// A sum of losses in whole numbers: exact, so that the order of adding does not matter.
  struct Losses {
    std::int64_t whole = 0;
    std::int64_t rest = 0;      // multiples of 2^-40, fewer than 2^40
    bool probabilities = true;  // each prediction was one
    bool operator==(const Losses&) const = default;
    void addExample(double probability);
    void add(const Losses& other);
    double sum() const;
  };

  void requireClass(std::int64_t index) const;

  std::int64_t classes_;
  std::int64_t examples_ = 0;
  std::vector<std::int64_t> confusion_;  // [actual * classes + predicted]
  std::vector<std::int64_t> ranks_;      // [r] examples with r classes ranked before their own
  Losses losses_;
  std::vector<std::string> names_;  // [class], or empty
};

/// Runs `model` over a batch and counts its predictions; the first batch creates the evaluation. For code
/// that loops over batches itself.
/// @throws InvalidArgument if labels and predictions do not match; nothing of the batch is counted then.
void evaluateBatch(Model& model, const Batch& batch, std::optional<Evaluation>& evaluation);

/// Runs `model` over all batches of `data`, from its start (epoch 0).
/// @throws InvalidArgument if there are no batches, or labels and predictions do not match.
Evaluation evaluate(Model& model, DataSetIterator& data);

}  // namespace muster
