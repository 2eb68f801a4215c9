#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <typeinfo>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/data/epoch_order.h"
#include "muster/datasets/image_set.h"

namespace muster {

/// Gives an ImageSet in batches: by default features float32 [B, C, H, W] in [0, 1] (byte / 255) and labels
/// int64 [B]. The last batch of an epoch may be smaller.
class ImageSetIterator : public DataSetIterator, protected NumberedBatches {
 public:
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  /// @param batch        examples per batch, at least 1.
  /// @param shuffleSeed  if given, each epoch is shuffled by (seed, epoch).
  /// @param limit        use only so many examples, each class in equal shares (`limited`).
  /// @throws InvalidArgument if `set` is null, or `batch` or `limit` is below 1.
  ImageSetIterator(std::shared_ptr<const ImageSet> set, std::int64_t batch,
                   std::optional<std::uint64_t> shuffleSeed = std::nullopt, std::int64_t limit = kAll);

  void reset(std::int64_t epoch) override { order_.reset(epoch); }
  bool next(Batch& batch) override;
  std::int64_t skip(std::int64_t batches) override { return order_.skip(batches, batch_); }
  std::optional<std::int64_t> examples() const override { return order_.count(); }
  std::optional<std::int64_t> batchSize() const override { return batch_; }
  const NumberedBatches* numbered() const override { return numberedIf<ImageSetIterator>(); }
  const InputDescription* description() const override { return &set_->description(); }

  /// The element type of features from the next batch on: Float32, or UInt8, the bytes. Networks read bytes
  /// as byte / 255 with the same bits; they take a quarter of the memory to gather and to send to a GPU.
  /// @throws InvalidArgument for another type.
  void setFeatures(DType type);
  /// Whether to leave out the last batch of each epoch if it is not full; by default it is given. Call it
  /// between epochs: it holds at once. Of shuffled data other examples are left out in each epoch.
  void setDropLast(bool drop) { order_.keepFull(drop ? batch_ : 1); }
  /// Where images are stored from the next batch on. With Device, batches hold row numbers of the bytes and
  /// `setFeatures` has no effect; see `MemoryPlacement`.
  void setPlacement(MemoryPlacement placement);

  /// The images that batches have, for another iterator over the same memory.
  const std::shared_ptr<const ImageSet>& set() const { return set_; }

 protected:
  /// The batches by number, if T is the most derived class; one derived from it may have a `next` of its own.
  template <typename T>
  const NumberedBatches* numberedIf() const {
    return typeid(*this) == typeid(T) ? this : nullptr;
  }

 private:
  /// The set as tensors that can be copied to GPUs.
  struct Resident;

  std::int64_t numberOfBatches() const override { return batchesPerEpoch().value(); }
  std::int64_t examplesEach() const override { return batch_; }
  void readBatch(std::int64_t number, Batch& batch) const override;
  void fill(std::span<const std::int64_t> indices, Batch& batch) const;
  void nameRows(std::span<const std::int64_t> indices, Batch& batch) const;

  std::shared_ptr<const ImageSet> set_;
  std::int64_t batch_;
  DType type_ = DType::Float32;
  std::shared_ptr<const Resident> resident_;  // with MemoryPlacement::Device
  EpochOrder order_;
};

}  // namespace muster
