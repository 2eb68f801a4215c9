#pragma once

#include <chrono>
#include <optional>

#include "muster/core/base/mutex.h"
#include "muster/core/nn/model.h"
#include "muster/parallel/runtime/replica_thread.h"
#include "muster/parallel/training/fit_run.h"

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
  /// @param index  over all nodes. @param local  among the workers of this one.
  Worker(int index, int local, const Placement& placement, int threads);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ReplicaThread& thread() { return thread_; }
  const ReplicaThread& thread() const { return thread_; }

  /// Adds a task that trains until the run ends. Failures go to the run; the task itself throws nothing.
  void train(Tasks& tasks, FitRun& run, std::int64_t epochs, Exchange& exchange, WorkerListeners& listeners);

  /// Whether the replica's parameters are those of a finished update. While no task runs.
  bool whole() const { return whole_; }
  /// The replica was given a whole state. While no task runs.
  void setWhole() { whole_ = true; }
  /// The replica is not the one to take: see Rounds::ahead. While no task runs.
  void setAhead() { whole_ = false; }
  /// Since the last `resetTimes`, as of the end of the last round. Thread-safe.
  WorkerTimes times() const { return times_.published(); }
  /// While no task runs.
  void resetTimes();

 private:
  void trainEpochs(FitRun& run, std::int64_t epochs, Exchange& exchange, WorkerListeners& listeners);
  /// Steps until the round's iterations are done, the epoch ends or the run stops. @return false if the run
  /// was aborted.
  bool runRound(FitRun& run, const Participant& me, WorkerListeners& listeners);
  /// @return nothing if the run was aborted.
  std::optional<Batch*> nextBatch(FitRun& run, const Participant& me, WorkerListeners& listeners);
  /// The worker's work with a batch: a step, or the gradient alone. Where the device goes on with a step, its
  /// score is read while the next one runs, unless a listener wants to see the replica as the step left it.
  void work(Batch& batch, FitRun& run, const Participant& me, WorkerListeners& listeners);
  /// Waits for the step that was begun last, and counts it.
  void finishStep(FitRun& run, WorkerListeners& listeners);
  /// Counts a step in the contribution, without its score.
  void count(const BatchStamp& stamp, std::int64_t examples, double weight);
  /// The same, if one was begun, and then ends its round if that was staged.
  void finishBegun(FitRun& run, const Participant& me, WorkerListeners& listeners);
  /// The update that follows a merge of gradients. @return the penalty.
  double update(FitRun& run, const RoundResult& round, WorkerListeners& listeners);
  /// Before the replica is merged: how large its numbers are, if a merge needs to know, and in a model that
  /// updates itself whether they are finite, which an update of the library's sees to.
  void lookAtReplica(const FitRun& run);
  void tell(WorkerListeners& listeners, double score);
  /// After a stop: a reader that waits for a free batch must not wait for ever.
  void giveBackBatches(FitRun& run);
  /// As a layer of the replica sees the other workers: what it waits for them is no time of computing.
  class Peer;
  /// What the thread was doing when it failed.
  std::string failure() const;

  const int local_;
  Contribution contribution_;  // worker's thread only
  BatchStamp current_;         // likewise: the batch in progress or the last one
  struct Step {
    StepTicket ticket;
    BatchStamp stamp;
    std::int64_t examples;
  };
  std::optional<Step> begun_;                 // likewise: its score is not read yet
  TrainedBatches trained_;                    // likewise
  bool staged_ = false;                       // likewise: it ends a round, which is still to be merged
  double* updates_ = nullptr;                 // likewise: its own, if it counts them; see kOwnUpdates
  double currentScore_ = 0;                   // likewise: its score, and its examples
  std::int64_t currentExamples_ = 0;          // likewise
  std::chrono::nanoseconds waitedInStep_{0};  // likewise: for other workers, since the step began
  bool whole_ = true;                         // likewise, but see whole()
  TimeSheet times_;
  ReplicaThread thread_;  // last: everything above outlives it
};

}  // namespace muster
