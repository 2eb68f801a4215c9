#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// Evaluates labels that are 0 or 1, of which an example may have several: each label by itself (from a
/// sigmoid output each), and means over the labels.
///
/// It keeps all predictions, 4 bytes each, so that the areas under the curves are exact. Nothing depends on
/// the order of the examples, nor on how they were split into batches and over workers. A label is predicted
/// if the prediction is above 0.5. 0/0 is 0; the scores are those of scikit-learn with `zero_division=0`.
class BinaryEvaluation {
 public:
  /// @throws InvalidArgument for fewer than one label.
  explicit BinaryEvaluation(std::int64_t labels);

  /// Adds a batch. For sequences, [N, T, labels], read [N, T] for [N] below: each time step is an example.
  /// @param predictions  float32 [N, labels], larger is likelier.
  /// @param labels  float32 [N, labels], 0 or 1; for one label also int64 [N].
  /// @param mask  float32 [N], if defined: examples with 0 are left out; other weights are ignored.
  /// @throws InvalidArgument naming shapes that do not match, or the example with a label other than 0 and 1,
  ///         or a prediction that is not finite. Nothing of that batch is added then.
  void add(const Tensor& predictions, const Tensor& labels, const Tensor& mask = {});
  /// Adds what another evaluation has added. @throws InvalidArgument if it has another number of labels.
  void merge(const BinaryEvaluation& other);

  /// Names the labels for `summary`. Not part of `toNumbers`.
  /// @throws InvalidArgument for another number of names.
  void setLabelNames(std::vector<std::string> names);
  /// [label] or empty
  const std::vector<std::string>& labelNames() const { return names_; }

  std::int64_t labels() const { return static_cast<std::int64_t>(labels_.size()); }
  std::int64_t examples() const { return examples_; }
  /// Number of examples that have this label.
  std::int64_t positives(std::int64_t label) const;

  // Of one label.

  /// Share of examples for which this label was predicted rightly.
  double accuracy(std::int64_t label) const;
  /// Share of examples predicted to have the label that have it.
  double precision(std::int64_t label) const;
  /// Share of examples with the label that were predicted to have it.
  double recall(std::int64_t label) const;
  /// The harmonic mean of precision and recall.
  double f1(std::int64_t label) const;
  /// Area under the receiver operating characteristic (ROC): how often an example with the label has a larger
  /// prediction than one without; equal predictions count half. NaN if all examples have the label, or none.
  double auc(std::int64_t label) const;
  /// Average precision, the area under the steps of the precision-recall curve: the sum over thresholds of
  /// (recall - recall at the next larger one) * precision. NaN if no example has the label.
  double averagePrecision(std::int64_t label) const;

  // Means over the labels.

  double accuracy() const;
  double precision() const;
  double recall() const;
  double f1() const;
  /// Over the labels that have one; NaN if none has.
  double auc() const;
  double averagePrecision() const;
  /// Share of examples for which all labels were predicted rightly: scikit-learn's accuracy of several
  /// labels.
  double exactMatch() const;

  /// A table to read: each label's scores and their means.
  std::string summary() const;

  /// Whether the same was added, in any order.
  bool operator==(const BinaryEvaluation& other) const { return toNumbers() == other.toNumbers(); }

  /// All that was added, for processes that evaluate together, in an order of its own.
  std::vector<std::int64_t> toNumbers() const;
  /// The reverse. @throws InvalidArgument for numbers that are no evaluation's.
  static BinaryEvaluation fromNumbers(std::span<const std::int64_t> numbers);

 private:
  struct Label {
    std::vector<float> with,  // predictions for examples that have the label
        without;              // and for those that do not
  };
  /// Of one label: by whether an example has it and whether it was predicted.
  struct Counts {
    std::int64_t truePositives, falsePositives, trueNegatives, falseNegatives;
  };

  const Label& labelAt(std::int64_t label) const;
  Counts countsOf(std::int64_t label) const;
  double meanOver(double (BinaryEvaluation::*score)(std::int64_t) const) const;

  std::int64_t examples_ = 0;
  std::int64_t allRight_ = 0;  // examples
  std::vector<Label> labels_;
  std::vector<std::string> names_;  // [label], or empty
};

}  // namespace muster
