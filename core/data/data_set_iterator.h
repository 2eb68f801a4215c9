#pragma once

#include <cstdint>
#include <optional>

#include "muster/core/data/batch.h"

namespace muster {

/// Gives the batches of an epoch, one after the other. One thread at a time calls an iterator, but not always
/// the same one: a prefetching reader calls it from a thread of its own.
class DataSetIterator {
 public:
  virtual ~DataSetIterator() = default;

  /// Goes to the start of epoch `epoch` (counted from 0 over the life of a model). An iterator that shuffles
  /// derives its order from its seed and `epoch` alone, so that a resumed training sees the same order.
  virtual void reset(std::int64_t epoch) = 0;

  /// Fills `batch` with the next examples, reusing its memory where the shape allows, and leaves the stamp
  /// alone. What the batch holds beside is dropped: it may come from another iterator. @return false, with
  /// `batch` untouched, at the end of the epoch.
  virtual bool next(Batch& batch) = 0;

  /// Examples in an epoch, where that is known.
  virtual std::optional<std::int64_t> examples() const { return std::nullopt; }
  /// Examples in a full batch, where that is known.
  virtual std::optional<std::int64_t> batchSize() const { return std::nullopt; }
  /// Batches in an epoch, the last perhaps smaller, where both of these are known.
  std::optional<std::int64_t> batchesPerEpoch() const {
    const auto all = examples(), size = batchSize();
    if (!all || !size || *size < 1) return std::nullopt;
    return (*all + *size - 1) / *size;
  }
};

}  // namespace muster
