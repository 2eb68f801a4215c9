#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/core/eval/exact_sum.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Evaluates a regression: the errors of each column (output), and their means over the columns.
///
/// The sums behind these numbers are exact, so they do not depend on the order of the examples, nor on how
/// they were split into batches and over workers; no digits are lost where labels have a large mean. The
/// scores are those of scikit-learn; the overall ones are means over the columns with equal weights.
class RegressionEvaluation {
 public:
  /// @throws InvalidArgument for fewer than one column.
  explicit RegressionEvaluation(std::int64_t columns);

  /// Adds a batch. For sequences, [N, T, columns], read [N, T] for [N] below: each time step is an example.
  /// @param predictions, labels  float32 [N, columns].
  /// @param mask  float32 [N], if defined: examples with 0 are left out; other weights are ignored.
  /// @throws InvalidArgument naming shapes that do not match, or the example with a number that is not
  ///         finite. Nothing of that batch is added then.
  void add(const Tensor& predictions, const Tensor& labels, const Tensor& mask = {});
  /// Adds what another evaluation has added. @throws InvalidArgument if it has another number of columns.
  void merge(const RegressionEvaluation& other);

  std::int64_t columns() const { return static_cast<std::int64_t>(sums_.size()); }
  std::int64_t examples() const { return examples_; }

  /// Says what was added: the columns' names, and by which scale numbers were divided before. From then on
  /// all errors are in the columns' own units. Not part of `toNumbers`.
  /// @throws InvalidArgument for another number of columns.
  void setTargets(std::vector<TargetColumn> targets);
  const std::vector<TargetColumn>& targets() const { return targets_; }  ///< [column], or empty

  // Figures of one column; 0 without examples. In its own units, if `setTargets` was called; else as added.

  /// Mean of (prediction - label)^2.
  double meanSquaredError(std::int64_t column) const;
  /// Mean of |prediction - label|.
  double meanAbsoluteError(std::int64_t column) const;
  /// Square root of the mean squared error.
  double rootMeanSquaredError(std::int64_t column) const;
  /// The coefficient of determination: 1 - sum of squared errors / sum of squared deviations of the labels
  /// from their mean. 1 is perfect, 0 as good as predicting the mean. NaN if all labels are equal: undefined;
  /// the mean over the columns is of those that have one.
  double r2(std::int64_t column) const;
  /// Pearson's correlation of predictions and labels; 0 if all predictions are equal, but NaN if all labels
  /// are: undefined, and left out of the mean, as r2.
  double correlation(std::int64_t column) const;

  // Means over the columns.

  double meanSquaredError() const;
  double meanAbsoluteError() const;
  double rootMeanSquaredError() const;
  double r2() const;
  double correlation() const;

  /// A table to read: each column's scores and their means.
  std::string summary() const;

  bool operator==(const RegressionEvaluation&) const = default;

  /// All that was added, for processes that evaluate together: as many numbers for as many columns.
  std::vector<std::int64_t> toNumbers() const;
  /// The reverse. @throws InvalidArgument for numbers that are no evaluation's.
  static RegressionEvaluation fromNumbers(std::span<const std::int64_t> numbers);

 private:
  /// Sums over the examples, of labels y and predictions p.
  enum Sum {
    Labels,
    Predictions,
    SquaredLabels,
    SquaredPredictions,
    Products,
    AbsoluteErrors,
    SquaredErrors,
    kSums
  };
  using Sums = std::array<ExactSum, kSums>;

  const Sums& sumsOf(std::int64_t column) const;
  double scaleOf(std::int64_t column) const;
  std::string nameOf(std::int64_t column) const;
  double mean(std::int64_t column, Sum sum) const;
  /// n sum(a b) - sum(a) sum(b): n^2 times the covariance.
  double scatter(const Sums& sums, Sum products, Sum a, Sum b) const;
  double meanOver(double (RegressionEvaluation::*score)(std::int64_t) const) const;

  std::int64_t examples_ = 0;
  std::vector<Sums> sums_;             // [column]
  std::vector<TargetColumn> targets_;  // [column], or empty
};

}  // namespace muster
