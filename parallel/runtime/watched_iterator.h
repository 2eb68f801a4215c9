#pragma once

#include <cstdint>
#include <string>

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
  WatchedIterator(DataSetIterator& data, Activity& activity) : data_(data), activity_(activity) {}

  /// @param begun  the part of the epoch to skip. @return the examples in that part.
  /// @throws InvalidArgument as skipTrained does.
  std::int64_t reset(std::int64_t epoch, const EpochPosition& begun = {}) {
    activity_.set(Activity::Kind::InIterator);
    epoch_ = epoch;
    batch_ = -1;
    data_.reset(epoch);
    batch_ = 0;
    const std::int64_t skipped = skipTrained(data_, begun);
    batch_ = begun.nextBatch;
    return skipped;
  }

  /// The iterator was reset to this epoch, and `batches` were read or skipped, through another object.
  void resumeAfter(std::int64_t epoch, std::int64_t batches) {
    epoch_ = epoch;
    batch_ = batches;
  }

  /// @throws InvalidArgument for a batch without examples.
  bool next(Batch& batch) {
    activity_.set(Activity::Kind::InIterator, batch_);
    if (!nextBatch(data_, batch)) return false;
    require(batch.examples() > 0, "the batch has no examples");
    ownMemory(batch);  // it may wait in a queue
    ++batch_;
    return true;
  }

  /// Skips a batch of another node. Node 0 warns, once in a program, if that reads it.
  /// @param node  this one. @return the number of its examples; 0 at the end of the epoch.
  std::int64_t skipOne(int node) {
    activity_.set(Activity::Kind::InIterator, batch_);
    const std::int64_t examples = data_.skip(1);
    batch_ += examples > 0 ? 1 : 0;
    if (node == 0 && !readsToSkip_ && data_.readsToSkip()) {
      readsToSkip_ = true;
      detail::warnOnce(
          "nodes: the data iterator has no skip() of its own, so each node reads all batches; "
          "override skip() to read only its share");
    }
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
  std::int64_t epoch_ = 0;
  std::int64_t batch_ = -1;   // the next batch; -1: in reset
  bool readsToSkip_ = false;  // see skipOne
};

}  // namespace muster
