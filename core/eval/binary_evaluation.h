#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/core/eval/detail/binary_label.h"
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
  std::int64_t positives(std::int64_t label) const { return std::ssize(labelAt(label).with); }

  // Figures of one label.

  /// Share of examples for which this label was predicted rightly.
  double accuracy(std::int64_t label) const { return labelAt(label).accuracy(); }
  /// Share of examples predicted to have the label that have it.
  double precision(std::int64_t label) const { return labelAt(label).precision(); }
  /// Share of examples with the label that were predicted to have it.
  double recall(std::int64_t label) const { return labelAt(label).recall(); }
  /// The harmonic mean of precision and recall.
  double f1(std::int64_t label) const { return labelAt(label).f1(); }
  /// Area under the receiver operating characteristic (ROC): how often an example with the label has a larger
  /// prediction than one without; equal predictions count half. NaN if all examples have the label, or none.
  double auc(std::int64_t label) const { return labelAt(label).auc(); }
  /// Average precision, the area under the steps of the precision-recall curve: the sum over thresholds of
  /// (recall - recall at the next larger one) * precision. NaN if no example has the label.
  double averagePrecision(std::int64_t label) const { return labelAt(label).averagePrecision(); }

  // Means over the labels.

  double accuracy() const { return meanOver(&detail::BinaryLabel::accuracy); }
  double precision() const { return meanOver(&detail::BinaryLabel::precision); }
  double recall() const { return meanOver(&detail::BinaryLabel::recall); }
  double f1() const { return meanOver(&detail::BinaryLabel::f1); }
  /// Over the labels that have one; NaN if none has.
  double auc() const { return meanOver(&detail::BinaryLabel::auc); }
  double averagePrecision() const { return meanOver(&detail::BinaryLabel::averagePrecision); }
  /// Share of examples for which all labels were predicted rightly: scikit-learn's accuracy of several
  /// labels.
  double exactMatch() const { return detail::quotient(allRight_, examples_); }

  /// A table to read: each label's scores and their means.
  std::string summary() const;

  /// Whether the same was added, in any order.
  bool operator==(const BinaryEvaluation& other) const { return toNumbers() == other.toNumbers(); }

  /// All that was added, for processes that evaluate together, in an order of its own.
  std::vector<std::int64_t> toNumbers() const;
  /// The reverse. @throws InvalidArgument for numbers that are no evaluation's.
  static BinaryEvaluation fromNumbers(std::span<const std::int64_t> numbers);

 private:
  const detail::BinaryLabel& labelAt(std::int64_t label) const;
  double meanOver(double (detail::BinaryLabel::*score)() const) const;

  std::int64_t examples_ = 0;
  std::int64_t allRight_ = 0;  // examples
  std::vector<detail::BinaryLabel> labels_;
  std::vector<std::string> names_;  // [label], or empty
};

}  // namespace muster
