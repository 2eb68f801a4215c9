#pragma once

#include <memory>

#include "muster/core/data/data_set_iterator.h"

namespace muster {

/// Reads ahead of its caller: a thread of its own takes batches from another iterator and keeps up to `depth`
/// of them ready. Gives the same batches in the same order as the iterator that it wraps.
///
/// Batches circulate: `next` trades the caller's used batch for a ready one, and the reader refills the used
/// one. So what a batch held is overwritten some time after it was given to `next`, and a caller who gives
/// the same batch every time makes nobody allocate.
class PrefetchingIterator : public DataSetIterator {
 public:
  /// @param inner  kept alive by the caller, and left alone by everybody else while this lives.
  /// @param depth  batches ahead; 0 reads in the caller's thread, when asked.
  /// @throws InvalidArgument if `depth` is negative.
  PrefetchingIterator(DataSetIterator& inner, int depth);
  /// Waits for the call of `inner` in progress, if any.
  ~PrefetchingIterator() override;

  /// Abandons the epoch under way, waiting for the call of `inner` in progress, and starts to read epoch
  /// `epoch`. What `inner.reset` throws comes out of `next`.
  void reset(std::int64_t epoch) override;

  /// Waits for a batch. Without a `reset` before it, reads on from where `inner` stands.
  /// An exception of `inner` is thrown here, after the batches read before it, and again by every further
  /// call until `reset`.
  bool next(Batch& batch) override;

  std::optional<std::int64_t> examples() const override { return examples_; }
  std::optional<std::int64_t> batchSize() const override { return batchSize_; }

 private:
  class Reader;

  DataSetIterator& inner_;
  const std::optional<std::int64_t> examples_;  // asked for once: later the reader's thread calls inner_
  const std::optional<std::int64_t> batchSize_;
  std::unique_ptr<Reader> reader_;  // none where depth is 0
};

}  // namespace muster
