#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/data/epoch_order.h"

namespace muster {

/// One example of a Dataset: `return {Tensor::of(pixels, {1, 28, 28}), 7};`
struct Example {
  /// Same shape and type for all examples; float32 or uint8, on the CPU. May view memory of the data set: it
  /// is copied before the next `get`.
  Tensor features;
  /// A class index, or float32 targets of the same shape for all examples.
  std::variant<std::int64_t, Tensor> label;
};

/// Your own data: the number of examples, and the i-th one.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// Example `index`, 0 <= index < size(). One thread at a time calls it, not always the same thread; several
  /// at once if `DataLoaderOptions::readers` allows it.
  virtual Example get(std::int64_t index) const = 0;
  /// What features and labels mean, as `DataSetIterator::description`; nullptr, the default: not known.
  virtual const InputDescription* description() const { return nullptr; }
};

/// Options of a DataLoader.
struct DataLoaderOptions {
  bool shuffle = false;    ///< each epoch, by (seed, epoch)
  std::uint64_t seed = 0;  ///< of the shuffle
  bool dropLast = false;   ///< leave out a last batch that is not full
  /// Threads that call `get` at once for the examples of a batch, for pictures that must be decoded, say. The
  /// batches are the same for any number. 0: one for each core of the process.
  int readers = 1;
};

/// Makes batches of a Dataset.
class DataLoader : public DataSetIterator {
 public:
  /// @param dataset  must outlive the loader; its size is read once.
  /// @param batch    examples per batch, at least 1.
  /// @throws InvalidArgument for an invalid batch, data set size or number of readers.
  DataLoader(const Dataset& dataset, std::int64_t batch, DataLoaderOptions options = {});

  void reset(std::int64_t epoch) override { order_.reset(epoch); }
  /// @throws InvalidArgument naming the index of an example whose shape or type differs from its batch's;
  ///         whatever `get` throws. That batch is lost, and the next call continues after it.
  bool next(Batch& batch) override;
  /// Reads none of the examples.
  std::int64_t skip(std::int64_t batches) override { return order_.skip(batches, batch_); }
  /// Without the examples that `dropLast` leaves out.
  std::optional<std::int64_t> examples() const override { return order_.count(); }
  std::optional<std::int64_t> batchSize() const override { return batch_; }
  /// The data set's.
  const InputDescription* description() const override { return dataset_.description(); }

 private:
  const Dataset& dataset_;
  std::int64_t batch_;
  int readers_;
  EpochOrder order_;
};

}  // namespace muster
