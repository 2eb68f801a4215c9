#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "muster/core/base/queue.h"
#include "muster/core/data/batch.h"
#include "muster/core/nn/listener.h"
#include "muster/parallel/averaging/strategy.h"
#include "muster/parallel/worker/barrier.h"

namespace muster {

/// What somebody is doing right now, for the report of a stall. Written by its owner, read by anyone.
class Activity {
 public:
  enum class Kind {
    Idle,
    WaitingForData,
    WaitingForRoom,
    InIterator,
    Computing,
    InListener,
    Merging,
    WaitingForWorkers
  };

  void set(Kind kind, std::int64_t batch = -1);
  /// As in "computing batch 57 for 12 s"; empty when idle.
  std::string describe() const;

 private:
  std::atomic<Kind> kind_{Kind::Idle};
  std::atomic<std::int64_t> batch_{-1};
  std::atomic<std::chrono::steady_clock::rep> since_{0};
};

/// What a worker brings to a meeting.
struct Contribution {
  double scoreSum = 0;               ///< of the steps since the last meeting, each times its weight
  double weight = 0;                 ///< loss normaliser since the last meeting
  std::int64_t batches = 0;          ///< since the last meeting
  std::int64_t examples = 0;         ///< likewise
  std::int64_t epochIterations = 0;  ///< since the epoch began
  bool ended = false;                ///< it has had its last batch of the epoch
};

/// How a meeting ends for everyone.
enum class Verdict { Continue, EpochOver, Stop, Aborted };

/// All that the threads of one `fit()` share: queues, meetings, and the end, good or bad.
class FitRun {
 public:
  /// @param batches  that circulate between the free queue and the workers' queues.
  FitRun(int workers, std::span<const std::unique_ptr<Batch>> batches, Strategy& strategy,
         std::atomic<bool>& stop, bool coordinatorJoinsEveryMeeting, std::int64_t firstIteration,
         std::int64_t firstEpoch);

  // Data. A null batch ends an epoch.
  BoundedQueue<Batch*>& queue(int worker) { return *queues_[worker]; }
  BoundedQueue<Batch*>& freeBatches() { return free_; }
  bool stopping() const { return stop_; }
  std::int64_t firstIteration() const { return firstIteration_; }
  std::int64_t firstEpoch() const { return firstEpoch_; }

  /// Iterations until the next meeting. Between meetings only.
  std::int64_t quota() const { return quota_; }

  /// A worker's part in a meeting: waits for the others, merges its share, waits again.
  Verdict meet(int worker, const Contribution& contribution, Collective& collective, Context& context,
               WorkerTimes& times, Activity& activity);

  /// The coordinator waits for the next meeting that needs it. @return false if the run was aborted.
  bool awaitMeeting(std::chrono::milliseconds patience, const std::function<void()>& stalled) {
    return merged_.arrive(patience, stalled);
  }
  /// Lets the workers go on after a meeting that the coordinator has joined.
  void resume() { resumed_.arrive(); }

  // The meeting's result: for the coordinator, between awaitMeeting and resume, and for workers after `meet`.
  struct Meeting {
    Verdict verdict = Verdict::Continue;
    bool merges = false;  // somebody has something to contribute
    bool joinedByCoordinator = false;
    std::int64_t epoch = 0;
    std::int64_t iteration = 0;  // finished
    std::int64_t batchesInEpoch = 0, examplesInEpoch = 0;
    double scoreSumInEpoch = 0, weightInEpoch = 0;
    std::int64_t examples = 0;  // since the last merge
    double score = 0;           // likewise
  };
  const Meeting& meeting() const { return meeting_; }
  std::int64_t meetings() const { return meetings_; }
  std::chrono::nanoseconds mergeTime() const;

  /// Ends the run: the first failure is kept. Wakes everyone. Thread-safe.
  /// @param worker  -1 for the iterator, a merged listener or the coordinator.
  void fail(int worker, const std::string& where, std::exception_ptr cause);
  bool failed() const { return failed_; }
  /// Wakes everyone who waits for a batch or for room.
  void closeQueues();
  /// Throws the TrainingError, if there was a failure. After all threads have ended.
  void rethrow() const;

 private:
  void plan();

  Strategy& strategy_;
  std::atomic<bool>& stop_;
  const bool coordinatorJoinsEveryMeeting_;
  const std::int64_t firstIteration_, firstEpoch_;
  BoundedQueue<Batch*> free_;
  std::vector<std::unique_ptr<BoundedQueue<Batch*>>> queues_;  // [worker]

  Barrier gather_, mergedAlone_;                      // the workers
  Barrier merged_, resumed_;                          // the workers and the coordinator
  std::vector<Contribution> contributions_;           // [worker] written by its worker before gather_
  std::vector<double> weights_;                       // [worker] written in gather_
  std::vector<std::chrono::nanoseconds> mergeTimes_;  // [worker] written by its worker before merged_
  Meeting meeting_;                                   // written in gather_
  std::int64_t quota_;                                // likewise
  std::int64_t meetings_ = 0;                         // likewise
  std::int64_t epoch_, epochFirstIteration_;          // likewise

  std::atomic<bool> failed_{false};
  mutable std::mutex failureMutex_;
  std::exception_ptr failure_;  // guarded by failureMutex_; a TrainingError
};

}  // namespace muster
