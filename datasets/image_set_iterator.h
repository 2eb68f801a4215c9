#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/data/epoch_order.h"
#include "muster/datasets/image_set.h"

namespace muster {

/// Gives an ImageSet in batches: features float32 [B, C, H, W] in [0, 1] (byte / 255), labels int64 [B],
/// unless told otherwise. The last batch of an epoch holds what is left.
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

  /// What features are from the next batch on: Float32, or UInt8, the bytes themselves, which networks read
  /// as byte / 255 to the same bits: a quarter of the memory to gather and to send to a GPU.
  /// @throws InvalidArgument for another type.
  void setFeatures(DType type);
  /// Where the images are from the next batch on. With Device batches name rows of the bytes, whatever
  /// `setFeatures` says; see `MemoryPlacement`.
  void setPlacement(MemoryPlacement placement);

  /// The images, for another iterator over the same memory.
  const std::shared_ptr<const ImageSet>& set() const { return set_; }

 private:
  /// The set as tensors that may lie on GPUs.
  struct Resident;

  void nameRows(std::span<const std::int64_t> indices, Batch& batch) const;

  std::shared_ptr<const ImageSet> set_;
  std::int64_t batch_;
  DType type_ = DType::Float32;
  std::shared_ptr<const Resident> resident_;  // with MemoryPlacement::Device
  EpochOrder order_;
};

}  // namespace muster
