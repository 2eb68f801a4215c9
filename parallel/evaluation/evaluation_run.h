#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "muster/core/base/queue.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/model.h"
#include "muster/parallel/runtime/activity.h"

namespace muster {

/// All that the threads of one evaluation share: queues, counts, and the failure. The caller deals the
/// batches, batch b to worker b mod W; each worker counts what its replica predicts.
///
/// Nobody waits for ever: `deal` always closes the queues, and until then every worker gives batches back,
/// whatever has failed.
class EvaluationRun {
 public:
  /// @param model  whose state the replicas take. It is not to change meanwhile.
  /// @param devices  [worker]
  /// @param batchesAhead  that are read ahead, over all workers.
  EvaluationRun(Model& model, std::vector<Device> devices, std::int64_t batchesAhead);

  /// Reads the data set from its start, on the caller's thread. A failure of the iterator is the run's.
  void deal(DataSetIterator& data, Activity& activity);
  /// A worker's part, on its thread: gives `replica` the model's state, counts until the queue is closed, and
  /// gives it its own state back. A failure is the run's.
  void work(int worker, Model& replica, Activity& activity) noexcept;
  /// No other batch comes: workers end.
  void closeQueues();
  /// Waits until every worker has done its part.
  void awaitWorkers();

  /// The counts of all. After all parts have ended.
  /// @throws TrainingError for the failure: of several that of the earliest batch, the same in every run;
  ///         InvalidArgument if there were no batches.
  Evaluation result();

 private:
  void countBatches(int worker, Model& replica, Activity& activity);
  /// @param sequence  of the batch that failed.
  template <typename Where>
  void fail(std::int64_t sequence, int worker, std::exception_ptr cause, Where where) noexcept;
  /// The exception in progress.
  void failInBatch(std::int64_t sequence, int worker) noexcept;

  static constexpr std::int64_t kBeforeAnyBatch = -1;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  const std::vector<Device> devices_;              // [worker]
  std::vector<Tensor> state_;                      // the model's blocks
  std::vector<Batch> batches_;                     // that circulate between the free queue and the workers'
  std::vector<std::optional<Evaluation>> counts_;  // [worker] its thread only, until all have ended
  BoundedQueue<Batch*> free_;
  std::vector<std::unique_ptr<BoundedQueue<Batch*>>> queues_;  // [worker]
  std::atomic<std::int64_t> failedAt_{kNever};                 // the earliest batch that failed
  std::mutex mutex_;
  std::condition_variable ended_;
  std::exception_ptr failure_;  // guarded by mutex_
  std::size_t working_;         // guarded by mutex_
};

}  // namespace muster
