#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/data/epoch_order.h"
#include "muster/datasets/image_set.h"

namespace muster {

/// Gives an ImageSet in batches: features float32 [B, C, H, W] in [0, 1] (byte / 255), labels int64 [B]. The
/// last batch of an epoch holds what is left.
class ImageSetIterator : public DataSetIterator {
 public:
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  /// @param batch        examples a batch, at least 1.
  /// @param shuffleSeed  where given, each epoch has an order of its own, from (seed, epoch).
  /// @param limit        only the first `limit` examples of the set, shuffled or not.
  /// @throws InvalidArgument for no set, or a batch or a limit below 1.
  ImageSetIterator(std::shared_ptr<const ImageSet> set, std::int64_t batch,
                   std::optional<std::uint64_t> shuffleSeed = std::nullopt, std::int64_t limit = kAll);

  void reset(std::int64_t epoch) override { order_.reset(epoch); }
  bool next(Batch& batch) override;
  std::optional<std::int64_t> examples() const override { return order_.count(); }
  std::optional<std::int64_t> batchSize() const override { return batch_; }

  /// The images, for another iterator over the same memory.
  const std::shared_ptr<const ImageSet>& set() const { return set_; }

 private:
  std::shared_ptr<const ImageSet> set_;
  std::int64_t batch_;
  EpochOrder order_;
};

}  // namespace muster
