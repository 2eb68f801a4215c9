#pragma once

#include <cstdint>
#include <vector>

namespace muster::detail {

/// The predictions for a label that is 0 or 1, and scores of them. A prediction above 0.5 predicts the label.
/// 0/0 is 0. The order of the predictions does not matter.
struct BinaryLabel {
  std::vector<float> with,  ///< predictions for examples that have the label
      without;              ///< and for those that do not

  static bool isPredicted(float prediction) { return prediction > 0.5f; }

  void add(float prediction, bool hasLabel) { (hasLabel ? with : without).push_back(prediction); }
  void merge(const BinaryLabel& other);

  double accuracy() const;
  double precision() const;
  double recall() const;
  double f1() const;
  /// NaN if all examples have the label, or none.
  double auc() const;
  /// NaN if no example has the label.
  double averagePrecision() const;
};

/// `part` of `whole`; 0 of 0 is 0.
double quotient(std::int64_t part, std::int64_t whole);
/// From the largest.
std::vector<float> descending(std::vector<float> values);

}  // namespace muster::detail
