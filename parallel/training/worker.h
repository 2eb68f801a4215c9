#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "muster/parallel/runtime/replica_thread.h"
#include "muster/parallel/training/fit_run.h"
#include "muster/parallel/training/replica_steps.h"
#include "muster/parallel/training/worker_batches.h"

namespace muster {

/// A replica's thread in training. It lives as long as the wrapper.
class Worker {
 public:
  /// @param index  among the workers of all nodes. @param local  among those of this node.
  Worker(int index, int local, const Placement& placement, int threads);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ReplicaThread& thread() { return thread_; }
  const ReplicaThread& thread() const { return thread_; }

  /// Adds a task that trains until the run ends. Failures go to the run; the task itself throws nothing.
  void train(Tasks& tasks, FitRun& run, Exchange& exchange, WorkerListeners& listeners);

  /// Whether the replica's parameters are those of a finished update. Call only while no task runs.
  bool whole() const { return steps_.whole(); }
  /// Records that the replica was given a complete state, or (false) that it is ahead of the last merge (see
  /// MergeShares::ahead). Call only while no task runs.
  void setWhole(bool whole) { steps_.setWhole(whole); }
  /// Times from the last `resetTimes` to the end of the last round. Thread-safe.
  WorkerTimes times() const { return times_.published(); }
  /// Call only while no task runs.
  void resetTimes();

 private:
  /// Carries out orders until the run ends.
  void obey(FitRun& run, WorkerBatches& batches, const Participant& me);
  /// Trains until the round's iterations are done, the epoch ends or the run stops. @return false if the run
  /// was aborted.
  bool runRound(FitRun& run, WorkerBatches& batches, const Participant& me, std::int64_t iterations);
  void visit(const std::function<void(int)>& task);
  /// What the thread was doing when it failed. @param reading  see WorkerBatches.
  std::string failure(const BatchStamp* reading) const;

  const int local_;
  TimeSheet times_;
  ReplicaSteps steps_;    // used by the thread's tasks
  ReplicaThread thread_;  // last: destroyed before the members that its tasks use
};

}  // namespace muster
