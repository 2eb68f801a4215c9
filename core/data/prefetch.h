#pragma once

#include <memory>

#include "muster/core/data/data_set_iterator.h"

namespace muster {

/// Reads ahead: a thread takes batches from another iterator and keeps up to `depth` of them ready. Gives the
/// same batches in the same order as the inner iterator.
///
/// Batches are recycled: `next` exchanges the caller's used batch for a ready one, and the reader refills the
/// used one later. A caller that always passes the same batch causes no allocation.
///
/// A child of fork() does not have the thread: `reset`, `next` and `skip` throw InvalidArgument there, if
/// `depth` is not 0.
class PrefetchingIterator : public DataSetIterator {
 public:
  /// @param inner  must outlive this object and must not be used otherwise meanwhile.
  /// @param depth  batches ahead; 0 reads in the caller's thread, on demand.
  /// @throws InvalidArgument if `depth` is negative.
  PrefetchingIterator(DataSetIterator& inner, int depth);
  /// Waits for a call of `inner` in progress.
  ~PrefetchingIterator() override;

  /// Cancels the epoch in progress, waits for a call of `inner` in progress, and starts to read epoch
  /// `epoch`. `next` throws what `inner.reset` throws.
  void reset(std::int64_t epoch) override;

  /// Waits for a batch. Without a `reset` before it, continues from the current position of `inner`. An
  /// exception of `inner` is thrown after the batches read before it, and by every call until `reset`.
  bool next(Batch& batch) override;

  /// Takes batches that were read ahead; then waits for a call of `inner` in progress, and has `inner` skip
  /// the others. A caller that takes every N-th batch, as with N nodes, soon has only these read. Once it
  /// takes another one, `inner` is reset to the epoch and skips to it.
  std::int64_t skip(std::int64_t batches) override;
  bool readsToSkip() const override;

  const DataSetIterator* inner() const override { return &inner_; }
  std::optional<std::int64_t> examples() const override { return examples_; }
  std::optional<std::int64_t> batchSize() const override { return batchSize_; }

 private:
  class Reader;

  DataSetIterator& inner_;
  const std::optional<std::int64_t> examples_;  // read once: later the reader's thread uses inner_
  const std::optional<std::int64_t> batchSize_;
  std::unique_ptr<Reader> reader_;  // none if depth is 0
};

}  // namespace muster
