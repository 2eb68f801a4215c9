#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/error.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/own_memory.h"
#include "muster/core/nn/training_state.h"
#include "muster/parallel/runtime/activity.h"

namespace muster {

/// Calls a user's iterator, and sets the calling thread's activity. Refuses batches without examples, and
/// remembers for an error message which call has failed.
class WatchedIterator {
 public:
  /// @param first  the batch with which the first epoch begins, with the position of its first example in the
  ///               stamp, if the iterator was reset and read it already: it is not asked for it again, since
  ///               it may not be able to give it. Else null.
  WatchedIterator(DataSetIterator& data, Activity& activity, Batch* first = nullptr)
      : data_(data), activity_(activity), first_(first) {}

  /// @param begun  the part of the epoch to skip. @return the examples in that part.
  /// @throws InvalidArgument as skipTrained does.
  std::int64_t reset(std::int64_t epoch, const EpochPosition& begun = {}) {
    activity_.set(Activity::Kind::InIterator);
    if (batch_ >= 0) first_ = nullptr;  // of an earlier epoch
    epoch_ = epoch;
    batch_ = begun.nextBatch;
    if (first_) return first_->stamp.firstExample;
    batch_ = -1;
    data_.reset(epoch);
    batch_ = 0;
    const std::int64_t skipped = skipTrained(data_, begun);
    batch_ = begun.nextBatch;
    return skipped;
  }

  /// @throws InvalidArgument for a batch without examples.
  bool next(Batch& batch) {
    activity_.set(Activity::Kind::InIterator, batch_);
    if (first_)
      std::swap(batch, *std::exchange(first_, nullptr));
    else if (!nextBatch(data_, batch))
      return false;
    require(batch.examples() > 0, "the batch has no examples");
    ownMemory(batch);  // it may wait in a queue
    ++batch_;
    return true;
  }

  /// Skips a batch of another node. Node 0 warns, once in a program, if that reads it.
  /// @param node  this one. @return the number of its examples; 0 at the end of the epoch.
  std::int64_t skipOne(int node) {
    activity_.set(Activity::Kind::InIterator, batch_);
    const std::int64_t examples = first_ ? std::exchange(first_, nullptr)->examples() : data_.skip(1);
    batch_ += examples > 0 ? 1 : 0;
    if (node == 0 && data_.readsToSkip())
      detail::warnOnce(
          "nodes: the data iterator has no skip() of its own, so each node reads all batches; "
          "override skip() to read only its share");
    return examples;
  }

  /// For the error message: the call that has thrown.
  std::string failure() const {
    if (batch_ < 0) return fmt::format("the data iterator failed in reset to epoch {}", epoch_ + 1);
    const BatchStamp at{.sequence = batch_, .epoch = epoch_};
    return fmt::format("the data iterator failed at {}", at.toString());
  }

 private:
  DataSetIterator& data_;
  Activity& activity_;
  Batch* first_;
  std::int64_t epoch_ = 0;
  std::int64_t batch_ = -1;  // the next batch; -1: in reset, or before it
};

}  // namespace muster
