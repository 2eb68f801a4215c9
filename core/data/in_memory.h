#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/data/epoch_order.h"
#include "muster/core/data/input_description.h"

namespace muster {

/// Copies the rows `rows` of `source` [N, ...] to `target` [rows.size(), ...], in that order. Both are
/// RowMajor on the CPU with one element type. @throws InvalidArgument for shapes that do not match, or a row
/// that does not exist.
void gatherRows(const Tensor& source, std::span<const std::int64_t> rows, Tensor& target);

/// Gives the rows of two tensors in batches; the last batch of an epoch may be smaller.
class InMemoryDataSetIterator : public DataSetIterator, protected NumberedBatches {
 public:
  /// @param features     [N, ...], float32, uint8, or int64 indices; shared, not copied.
  /// @param labels       [N] int64 classes, or [N, F] float32; for sequences [N, T] or [N, T, F]; shared, not
  ///         copied.
  /// @param batch        examples per batch, at least 1.
  /// @param shuffleSeed  if given, each epoch is shuffled by (seed, epoch).
  /// @param placement    with Device, batches hold row numbers; the data set is copied to a GPU once, when a
  ///         network there first trains on it.
  /// @throws InvalidArgument if the tensors cannot make batches, naming both.
  InMemoryDataSetIterator(Tensor features, Tensor labels, std::int64_t batch,
                          std::optional<std::uint64_t> shuffleSeed = std::nullopt,
                          MemoryPlacement placement = MemoryPlacement::Host);

  void reset(std::int64_t epoch) override { order_.reset(epoch); }
  bool next(Batch& batch) override;
  std::int64_t skip(std::int64_t batches) override { return order_.skip(batches, batch_); }
  std::optional<std::int64_t> examples() const override { return order_.count(); }
  std::optional<std::int64_t> batchSize() const override { return batch_; }
  const NumberedBatches* numbered() const override;
  /// Whether to leave out the last batch of each epoch if it is not full; by default it is given. Call it
  /// between epochs: it holds at once. Of shuffled data other examples are left out in each epoch.
  void setDropLast(bool drop) { order_.keepFull(drop ? batch_ : 1); }
  /// Gives batches the rows of these masks, with their names (see Batch). @param masks  float32 [N] or [N, T]
  /// on the CPU; shared, not copied. @throws InvalidArgument for another one, naming it.
  void setMasks(std::vector<NamedTensor> masks);
  const InputDescription* description() const override { return description_.get(); }
  /// Says how the tensors were made, as `tableIterator` does.
  void setDescription(InputDescription description) {
    description_ = std::make_shared<const InputDescription>(std::move(description));
  }

 private:
  std::int64_t numberOfBatches() const override { return batchesPerEpoch().value(); }
  std::int64_t examplesEach() const override { return batch_; }
  void readBatch(std::int64_t number, Batch& batch) const override;
  void fill(std::span<const std::int64_t> rows, Batch& batch) const;

  std::shared_ptr<const ResidentTensor> features_;
  std::shared_ptr<const ResidentTensor> labels_;
  std::vector<NamedTensor> masks_;
  MemoryPlacement placement_;
  std::int64_t batch_;
  EpochOrder order_;
  std::shared_ptr<const InputDescription> description_;  // may be null
};

}  // namespace muster
