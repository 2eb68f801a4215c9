#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace muster {

/// A replica and its factor in a linear combination.
struct MixingShare {
  std::size_t worker = 0;
  double factor = 1;
};

/// The result of mixing: replica w becomes sum_j a_wj x_j, with row w of a matrix a, and the merged copy
/// becomes a weighted mean. All are formed from the replicas' values before the mixing.
///
/// A strategy makes one Mixing, and sets its rows again when they change (Strategy::prepare).
class Mixing {
 public:
  Mixing() = default;
  /// No replica changes, nor does the merged copy.
  /// @param shares  the most that all rows have together; then setting rows allocates nothing.
  Mixing(std::size_t workers, std::size_t shares);

  std::size_t workers() const { return rows_.size(); }
  /// No replica changes.
  void clear();
  /// Sets a row. @param shares  at least one, by ascending worker, with finite factors.
  /// @throws InvalidArgument naming the invalid share.
  void setRow(std::size_t worker, std::span<const MixingShare> shares);
  /// Uses the row of worker `other` for `worker`, too.
  void shareRow(std::size_t worker, std::size_t other) { rows_[worker] = rows_[other]; }
  /// Sets the replicas' weights in the merged copy; [worker], >= 0. Empty: the merged copy does not change.
  /// @throws InvalidArgument unless there is one weight for each worker and their sum is above 0.
  void setMerged(std::span<const double> weights);

  /// The shares by ascending worker, without factors of 0; empty if the replica does not change.
  std::span<const MixingShare> row(std::size_t worker) const {
    return std::span(shares_).subspan(rows_[worker].begin, rows_[worker].end - rows_[worker].begin);
  }
  /// Whether the row of `worker` reads the replica of `other`.
  bool reads(std::size_t worker, std::size_t other) const {
    return std::ranges::binary_search(row(worker), other, {}, &MixingShare::worker);
  }
  std::span<const double> merged() const { return merged_; }

 private:
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  std::vector<MixingShare> shares_;
  std::vector<Range> rows_;  // [worker] in shares_
  std::vector<double> merged_;
};

}  // namespace muster
