#pragma once

#include <optional>
#include <vector>

#include "muster/parallel/runtime/time_sheet.h"
#include "muster/parallel/training/fit_run.h"

namespace muster {

/// The batches of one worker in a run: dealt to it by the reader, taken from a queue that all workers share,
/// or read by the worker itself (FitRun::numbered). Used by the worker's thread.
class WorkerBatches {
 public:
  /// @param local  the worker, among those of this node.
  WorkerBatches(FitRun& run, int local, Activity& activity, TimeSheet& times)
      : run_(run), local_(local), activity_(activity), times_(times) {}
  /// Allocates; nothing else does.
  void begin() { trained_.reserve(run_.queues.group()); }
  /// The next batch, for which it waits. @return null at the end of the epoch; nothing if the run was
  /// aborted.
  std::optional<Batch*> next() { return run_.numbered ? readByNumber() : dealt(); }
  /// The batch is no longer needed. Trained batches are returned in groups (see BatchQueues::group).
  /// @return false if the run was aborted.
  bool done(Batch* batch);
  /// After a stop: returns the worker's batches, so that a reader that waits for one does not hang.
  void giveBack();
  /// The batch that the worker is reading, or in whose reading the iterator has failed; null: none.
  const BatchStamp* reading() const { return reading_ ? &ownNext_ : nullptr; }

 private:
  BoundedQueue<Batch*>& queue() { return run_.queues.of(local_); }
  std::optional<Batch*> dealt();
  std::optional<Batch*> readByNumber();
  std::optional<Batch*> waitForBatch();
  std::optional<Batch*> unlessUnread(std::optional<Batch*> batch);
  bool giveBackTrained();

  FitRun& run_;
  const int local_;
  Activity& activity_;
  TimeSheet& times_;
  std::vector<Batch*> trained_;  // and not returned to the reader yet
  Batch* own_ = nullptr;         // filled by the worker itself, from the beginning of an epoch to its end
  BatchStamp ownNext_;           // of the batch that it reads next, or is reading
  bool reading_ = false;         // whether the worker is in the iterator's call
};

}  // namespace muster
