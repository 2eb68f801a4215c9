#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/data/epoch_order.h"

namespace muster {

/// One example of a Dataset: `return {Tensor::of(pixels, {1, 28, 28}), 7};`
struct Example {
  /// Of the same shape and type for all examples; float32 or uint8, on the CPU. May be a view of memory that
  /// the data set holds: it is copied before the next `get`.
  Tensor features;
  /// A class index, or float32 targets of the same shape for all examples.
  std::variant<std::int64_t, Tensor> label;
};

/// Data of one's own: how many examples there are, and the i-th.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// Example `index`, 0 <= index < size(). Called by one thread at a time, not always the same one.
  virtual Example get(std::int64_t index) const = 0;
};

struct DataLoaderOptions {
  bool shuffle = false;    ///< each epoch in an order of its own, from (seed, epoch)
  std::uint64_t seed = 0;  ///< of the shuffle
  bool dropLast = false;   ///< leave out a last batch that is not full
};

/// Makes batches of a Dataset.
class DataLoader : public DataSetIterator {
 public:
  /// @param dataset  kept alive by the caller; its size is asked for once.
  /// @param batch    examples a batch, at least 1.
  /// @throws InvalidArgument for a batch or a size that cannot be.
  DataLoader(const Dataset& dataset, std::int64_t batch, DataLoaderOptions options = {});

  void reset(std::int64_t epoch) override { order_.reset(epoch); }
  /// @throws InvalidArgument for an example unlike the others of its batch, naming its index; passes on what
  /// `get` throws. The batch is then lost, and the next call goes on after it.
  bool next(Batch& batch) override;
  /// Without those that `dropLast` leaves out.
  std::optional<std::int64_t> examples() const override;
  std::optional<std::int64_t> batchSize() const override { return batch_; }

 private:
  const Dataset& dataset_;
  std::int64_t batch_;
  bool dropLast_;
  EpochOrder order_;
};

}  // namespace muster
