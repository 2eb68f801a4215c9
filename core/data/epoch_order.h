#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace muster {

/// The order in which an epoch visits the examples 0 .. count-1, shuffled or not. A shuffled order is a
/// function of (count, seed, epoch), so any epoch can be resumed.
///
/// Source of the shuffle: Durstenfeld 1964, "Algorithm 235: Random permutation" (Fisher and Yates).
class EpochOrder {
 public:
  /// Starts at epoch 0. Without a seed every epoch is 0, 1, 2, ...
  /// @throws InvalidArgument if `count` is negative.
  EpochOrder(std::int64_t count, std::optional<std::uint64_t> shuffleSeed);

  /// From here on an epoch ends with the last full batch: the examples at the end of its order are left out,
  /// in a shuffled order other ones in each epoch. @param batch  examples per batch, at least 1; 1: none are
  /// left out.
  void keepFull(std::int64_t batch);

  /// Goes to the start of epoch `epoch`.
  void reset(std::int64_t epoch);

  /// The next examples, at most `most`; empty at the end. Valid until `reset`.
  std::span<const std::int64_t> take(std::int64_t most);
  /// The examples from `position` on, at most `most`, wherever `take` is. Valid until `reset`.
  std::span<const std::int64_t> at(std::int64_t position, std::int64_t most) const;
  /// Skips batches of `batch` examples each, at least 1, of which the last may be smaller.
  /// @return the number of examples in them, fewer at the end.
  std::int64_t skip(std::int64_t batches, std::int64_t batch);

  /// Examples in an epoch.
  std::int64_t count() const { return static_cast<std::int64_t>(order_.size()) / each_ * each_; }
  std::int64_t remaining() const { return count() - position_; }

 private:
  std::vector<std::int64_t> order_;
  std::optional<std::uint64_t> seed_;
  std::int64_t position_ = 0;
  std::int64_t each_ = 1;  // the count is a multiple of it
};

}  // namespace muster
