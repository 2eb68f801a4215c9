#pragma once

#include <cstdint>
#include <optional>

namespace muster::detail {

/// The batches of an epoch that a reader takes, at equal distances, as over N nodes: it takes batch b if b
/// mod `period` is `phase`. A value; by default a reader takes all batches.
struct BatchShare {
  std::int32_t period = 1, phase = 0;

  bool has(std::int64_t batch) const { return batch % period == phase; }
  bool operator==(const BatchShare&) const = default;
};

/// Learns a share from the batches that are taken: two equal distances between them.
class BatchShareGuess {
 public:
  static constexpr std::int64_t kLongestPeriod = 1 << 20;

  /// An epoch begins.
  void begin();
  /// The guess was wrong: no other in this epoch.
  void giveUp() { learns_ = false; }
  /// Notes that batch number `batch` was taken. @return the share, if it is known.
  std::optional<BatchShare> note(std::int64_t batch);

 private:
  bool learns_ = true;
  std::optional<std::int64_t> previous_;  // the last batch that was taken in this epoch
  std::int64_t distance_ = 0;             // between it and the one before
};

}  // namespace muster::detail
