#pragma once

#include <cstdint>
#include <optional>

#include "muster/core/data/batch.h"

namespace muster {

struct InputDescription;

/// The batches of the epoch to which an iterator was reset last, by number. Several threads may read at once,
/// each into its own batch, but not while another thread resets the iterator.
class NumberedBatches {
 public:
  virtual ~NumberedBatches() = default;
  /// Batches in an epoch.
  virtual std::int64_t numberOfBatches() const = 0;
  /// Examples in each batch but the last, which may be smaller.
  virtual std::int64_t examplesEach() const = 0;
  /// Fills `batch` as `DataSetIterator::next` does. @param number  from 0, below `numberOfBatches`.
  virtual void readBatch(std::int64_t number, Batch& batch) const = 0;
};

/// Gives the batches of an epoch in order. One thread at a time calls an iterator, not always the same
/// thread: a prefetching reader calls it from its own thread.
class DataSetIterator {
 public:
  virtual ~DataSetIterator() = default;

  /// Goes to the start of epoch `epoch` (from 0, over the life of a model). An iterator that shuffles derives
  /// its order from its seed and `epoch` only, so a resumed training sees the same order.
  virtual void reset(std::int64_t epoch) = 0;

  /// Fills `batch` with the next examples, and overwrites its memory if the shape allows. Does not change the
  /// stamp. Drops other tensors of the batch, which may come from another iterator.
  /// @return false at the end of the epoch; `batch` is unchanged then.
  virtual bool next(Batch& batch) = 0;

  /// Skips the next batches of the epoch: those trained before a training was resumed, or those of other
  /// nodes. The default reads them by `next`; override it to skip without reading. A training over several
  /// nodes skips one batch at a time; with the default, each node reads all batches.
  /// @param batches  how many; if the epoch ends before, fewer are skipped.
  /// @return the number of examples in them.
  virtual std::int64_t skip(std::int64_t batches) {
    Batch skipped;
    std::int64_t count = 0;
    readsToSkip_ = true;
    for (; batches > 0 && next(skipped); --batches) count += skipped.examples();
    return count;
  }
  /// Whether `skip` has read what it skipped, by the default. An iterator around another one asks that one.
  virtual bool readsToSkip() const { return readsToSkip_; }

  /// The batches by number, if they can be read so; else nullptr, the default. The same object for all
  /// epochs, as long as the iterator lives; it may be asked for before `reset`. A ParallelWrapper that has no
  /// core left for a reading thread lets each worker read its own batches by it, and calls `next` only for a
  /// first batch. So a class derived from one of the library's iterators, which may have another `next`, gets
  /// nullptr unless it overrides this, too.
  virtual const NumberedBatches* numbered() const { return nullptr; }

  /// The iterator that this one reads; nullptr, the default: none. While a training reads one of the two, an
  /// evaluation or another training of the other is refused, because it would advance the training's data.
  virtual const DataSetIterator* inner() const { return nullptr; }

  /// What features and labels mean, if that is known: columns, words, classes. A model with a description of
  /// its own refuses to train with or to be evaluated on data that mean something else (`requireSameInput`).
  /// Default: as the inner iterator says; nullptr without one: nothing is compared.
  virtual const InputDescription* description() const {
    return inner() != nullptr ? inner()->description() : nullptr;
  }

  /// Examples in an epoch, if known.
  virtual std::optional<std::int64_t> examples() const { return std::nullopt; }
  /// Examples in a full batch, if known.
  virtual std::optional<std::int64_t> batchSize() const { return std::nullopt; }
  /// Batches in an epoch, the last one perhaps smaller, if both of these are known.
  std::optional<std::int64_t> batchesPerEpoch() const {
    const auto all = examples(), size = batchSize();
    if (!all || !size || *size < 1) return std::nullopt;
    return (*all + *size - 1) / *size;
  }

 private:
  bool readsToSkip_ = false;
};

}  // namespace muster
