#pragma once

#include <chrono>
#include <optional>

#include "muster/core/base/mutex.h"
#include "muster/core/nn/model.h"
#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/runtime/replica_thread.h"
#include "muster/parallel/training/fit_run.h"
#include "muster/parallel/training/worker_batches.h"

namespace muster {

/// Calls listeners of Worker scope, one call at a time over all workers.
struct WorkerListeners {
  Trainer& trainer;
  Listeners listeners;
  Mutex mutex;
};

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
  bool whole() const { return whole_; }
  /// Records that the replica was given a complete state. Call only while no task runs.
  void setWhole() { whole_ = true; }
  /// Records that the replica is ahead of the last merge (see MergeShares::ahead). Call only while no task
  /// runs.
  void setAhead() { whole_ = false; }
  /// Times from the last `resetTimes` to the end of the last round. Thread-safe.
  WorkerTimes times() const { return times_.published(); }
  /// Call only while no task runs.
  void resetTimes();

 private:
  struct Step {
    StepTicket ticket;
    BatchStamp stamp;
    std::int64_t examples;
  };

  /// Carries out orders until the run ends.
  void obey(FitRun& run, const Participant& me, WorkerListeners& listeners);
  /// Steps until the round's iterations are done, the epoch ends or the run stops. @return false if the run
  /// was aborted.
  bool runRound(FitRun& run, const Participant& me, std::int64_t iterations, WorkerListeners& listeners);
  /// Trains a batch: runs a step, or computes the gradient alone. If the device only enqueues a step, its
  /// score is read while the next step runs, unless a listener needs the replica right after the step.
  void work(Batch& batch, FitRun& run, WorkerListeners& listeners);
  /// Counts an update, if the worker counts its own.
  void stampUpdate(BatchStamp& stamp);
  /// Waits for the score of a step. @throws NonFiniteScore, or InvalidArgument for an impossible weight.
  StepScore awaitScore(const Step& step, const FitRun& run);
  /// Waits for the step in `begun_`, and counts it.
  void finishStep(FitRun& run, WorkerListeners& listeners);
  /// Counts a step in the contribution, without its score.
  void count(const BatchStamp& stamp, std::int64_t examples, double weight);
  /// Calls `finishStep` if a step was begun.
  void finishBegun(FitRun& run, WorkerListeners& listeners);
  /// Updates the replica after a merge of gradients.
  void update(FitRun& run, const Participant& me, WorkerListeners& listeners);
  /// Called before a merge. Finds the replica's largest magnitude if the merge needs it, and requires finite
  /// numbers of a model that has its own updates (the library's updates guarantee them).
  void lookAtReplica(const MergeShares& shares);
  void tell(WorkerListeners& listeners, double score);
  /// Connects the replica's layers with the other workers. Time spent waiting is not counted as computing.
  class Peer;
  /// What the thread was doing when it failed.
  std::string failure() const;

  const int local_;
  // Used by the worker's thread only, up to times_:
  Contribution contribution_;
  BatchStamp current_;     // of the batch in progress, or of the last one
  bool hadBatch_ = false;  // whether the worker has had a batch in this run
  WorkerBatches batches_;
  std::optional<Step> begun_;                 // the step whose score is not read yet
  OwnUpdates* updates_ = nullptr;             // if the worker counts its own updates; see kOwnUpdates
  double currentScore_ = 0;                   // of the last finished step
  std::int64_t currentExamples_ = 0;          // of that step
  std::chrono::nanoseconds waitedInStep_{0};  // for other workers, since the step began
  bool whole_ = true;                         // other threads may use it while no task runs
  TimeSheet times_;
  ReplicaThread thread_;  // last: destroyed before the members that its tasks use
};

}  // namespace muster
