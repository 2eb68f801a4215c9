#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "muster/core/base/queue.h"
#include "muster/core/nn/model.h"
#include "muster/parallel/worker/fit_run.h"
#include "muster/parallel/worker/placement.h"

namespace muster {

/// Calls listeners of Worker scope, one call at a time over all workers.
struct WorkerListeners {
  Trainer& trainer;
  Listeners listeners;
  std::mutex mutex;
};

/// A thread with a device, a context and a replica of its own, all made and destroyed on that thread. It
/// lives as long as the wrapper.
class Worker {
 public:
  Worker(int index, Placement placement, int threads);
  /// Destroys the replica on its own thread and joins it.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int index() const { return index_; }
  const Placement& placement() const { return placement_; }

  /// Makes the replica, on the worker's thread. `model` must not change until the future is ready.
  std::future<void> replicate(const Model& model);
  /// Trains until the run ends. Failures go to the run; the future only tells the end.
  std::future<void> train(FitRun& run, std::int64_t epochs, Collective& collective,
                          WorkerListeners& listeners);
  /// Runs `task` on the worker's thread.
  std::future<void> submit(std::function<void()> task);

  /// The replica; while no task runs, or from the worker's thread.
  Model& replica() { return *replica_; }
  const Activity& activity() const { return activity_; }
  /// Since the last `train` began. Thread-safe.
  WorkerTimes times() const;

 private:
  void trainEpochs(FitRun& run, std::int64_t epochs, Collective& collective, WorkerListeners& listeners);
  /// Steps until the quota is done, the epoch ends or the run stops. @return false if the run was aborted.
  bool runRound(FitRun& run, WorkerListeners& listeners);
  void step(Batch& batch, WorkerListeners& listeners);
  /// After a stop: a reader that waits for a free batch must not wait for ever.
  void giveBackBatches(FitRun& run);
  void publishTimes();

  const int index_;
  const Placement placement_;
  const int threads_;
  std::unique_ptr<Context> context_;  // worker's thread only
  std::unique_ptr<Model> replica_;    // likewise, but see replica()
  Contribution contribution_;         // worker's thread only
  BatchStamp current_;                // likewise: the batch in progress, for messages
  WorkerTimes times_;                 // likewise
  Activity activity_;
  mutable std::mutex timesMutex_;
  WorkerTimes publishedTimes_;  // guarded by timesMutex_
  BoundedQueue<std::packaged_task<void()>> tasks_{4};
  std::jthread thread_;  // last: everything above outlives it
};

}  // namespace muster
