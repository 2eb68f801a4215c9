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

#include "muster/core/base/error.h"
#include "muster/core/base/queue.h"
#include "muster/core/data/batch.h"
#include "muster/parallel/runtime/activity.h"
#include "muster/parallel/runtime/barrier.h"
#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/runtime/time_sheet.h"
#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// What a worker brings to a meeting.
struct Contribution {
  double scoreSum = 0;               ///< of the steps since the last meeting, each times its weight
  double weight = 0;                 ///< loss normaliser since the last meeting
  std::int64_t batches = 0;          ///< since the last meeting
  std::int64_t examples = 0;         ///< likewise
  std::int64_t epochIterations = 0;  ///< since the epoch began
  bool ended = false;                ///< it has had its last batch of the epoch
  bool staged = false;               ///< its merge was staged, and it has gone on since
};

/// A worker as it comes to a meeting.
struct Participant {
  int worker = 0;
  Exchange& exchange;
  Context& context;
  TimeSheet& times;
  Activity& activity;
};

/// How a meeting ends for everyone.
enum class Verdict { Continue, EpochOver, Stop, Aborted };

/// All that the threads of one `fit()` share: queues, meetings, and the end, good or bad.
class FitRun {
 public:
  /// @param batches  that circulate between the free queue and the workers' queues.
  /// @param exchange  the participants', which a failure aborts; nullptr: none.
  /// @param patience  of workers that wait for each other, before they sleep; see Barrier.
  FitRun(int workers, std::span<const std::unique_ptr<Batch>> batches, Strategy& strategy,
         std::atomic<bool>& stop, bool coordinatorJoinsEveryMeeting, std::int64_t firstIteration,
         std::int64_t firstEpoch, Exchange* exchange, std::chrono::nanoseconds patience);

  // Data. A null batch ends an epoch.
  BoundedQueue<Batch*>& queue(int worker) { return *queues_[worker]; }
  BoundedQueue<Batch*>& freeBatches() { return free_; }
  /// Nobody shall begin another batch.
  bool stopping() const { return stop_ || failed_; }
  std::int64_t firstIteration() const { return firstIteration_; }
  std::int64_t firstEpoch() const { return firstEpoch_; }

  /// Iterations until the next meeting. Between meetings only.
  std::int64_t quota() const { return quota_; }

  /// A worker's part in a meeting: waits for the others, merges its share, waits again.
  /// @param settle  `double settle(const Meeting&)`: where local work is a gradient, called in a meeting that
  ///                merges, once all is reduced; updates the worker's replica. @return the penalty, alike for
  ///                all workers.
  template <typename Settle>
  Verdict meet(const Participant& who, const Contribution& contribution, Settle settle) {
    if (!gather(who, contribution)) return Verdict::Aborted;
    if (meeting_.merging) {
      reduce(who);
      if (strategy_.localWork() == LocalWork::Gradient) {
        if (!awaitReduced(who)) return Verdict::Aborted;
        addPenalty(settle(meeting_));
      }
    }
    return part(who);
  }

  /// Where layers that need every worker's batch add up their sums. A worker leaves it when it has no more
  /// batches in the epoch, and takes part again from the next.
  PeerSums& peers() { return peers_; }

  LocalWork localWork() const { return strategy_.localWork(); }
  /// Stages the merge of a worker that trains alone, so that it may go on before its round's scores are read.
  /// Its next `meet` is with a contribution that says so, and leads to Continue: the worker is on its way.
  /// @return false where the meeting has to come first.
  bool stage(const Participant& who);
  /// Prepares what a worker brings, once it has trained.
  void contribute(const Participant& who, double weight);

  /// The coordinator waits for the next meeting that needs it. @return false if the run was aborted.
  bool awaitMeeting() { return merged_.arrive(); }
  /// Sends all workers from such a meeting to do `errand(worker)`, each on its thread; it must not throw.
  /// @return false where the run was aborted: then nobody does it.
  bool beginErrand(std::function<void(int)> errand);
  /// Once all have done it: the meeting is as before.
  void endErrand();
  /// Lets the workers go on after a meeting that the coordinator has joined.
  void resume() { resumed_.arrive(); }

  // The meeting's result: for the coordinator, between awaitMeeting and resume, and for workers after `meet`.
  struct Meeting {
    Verdict verdict = Verdict::Continue;
    bool merging = false;  // somebody has trained, or the strategy has something left to exchange
    bool joinedByCoordinator = false;
    std::int64_t epoch = 0;
    std::int64_t iteration = 0;  // finished
    std::int64_t batchesInEpoch = 0, examplesInEpoch = 0;
    double scoreSumInEpoch = 0, weightInEpoch = 0;
    std::int64_t examples = 0;  // since the last merge
    double weight = 0;          // likewise
    double score = 0;           // likewise; where nothing was trained since, that of the last merge
    std::int64_t merges = 0;    // in this run, this one included
  };
  const Meeting& meeting() const { return meeting_; }
  std::chrono::nanoseconds mergeTime() const;
  /// Bytes that a contributor had to send, on average.
  std::int64_t exchangedBytes() const;
  double divergence() const { return strategy_.divergence(); }

  /// The last meeting whose result the replicas or the shadow hold, and how many there were: an abort may
  /// come between the reduction of gradients and the update. Like `meeting`, or after all threads have ended.
  const Meeting& settledMeeting() const { return settled_ ? meeting_ : previous_; }
  std::int64_t settledMeetings() const { return settled_ ? meetings_ : meetings_ - 1; }

  /// Ends the run: the first failure is kept, and everyone is woken. Thread-safe.
  /// @param worker  -1 for the iterator, a merged listener or the coordinator.
  /// @param where  gives the place in words, as in "worker 1 on cpu failed in batch 4 of epoch 1".
  template <typename Where>
  void fail(int worker, std::exception_ptr cause, Where where) noexcept {
    auto failure = cause;
    try {
      const auto text = fmt::format("{}: {}", where(), muster::describe(cause));
      failure = std::make_exception_ptr(TrainingError(text, worker, cause));
    } catch (...) {  // no memory for words: the cause must do, for others still wait to be woken
    }
    end(std::move(failure));
  }
  bool failed() const { return failed_; }
  /// Wakes everyone who waits for a batch or for room.
  void closeQueues();
  /// Throws the failure, if there was one. After all threads have ended.
  void rethrow() const;

 private:
  // The parts of a meeting, in their order.
  bool gather(const Participant& who, const Contribution& contribution);
  void plan();
  void reduce(const Participant& who);
  bool awaitReduced(const Participant& who);
  Round round() const;
  void addPenalty(double penalty);
  Verdict part(const Participant& who);
  bool awaitResume(int worker);

  void end(std::exception_ptr failure) noexcept;

  Strategy& strategy_;
  Exchange* const exchange_;
  std::atomic<bool>& stop_;
  const bool coordinatorJoinsEveryMeeting_;
  const std::int64_t firstIteration_, firstEpoch_;
  BoundedQueue<Batch*> free_;
  std::vector<std::unique_ptr<BoundedQueue<Batch*>>> queues_;  // [worker]

  PeerSums peers_;
  Barrier gather_, reduced_, mergedAlone_;   // the workers
  Barrier merged_, resumed_;                 // the workers and the coordinator
  std::vector<Contribution> contributions_;  // [worker] written by its worker before gather_
  std::vector<double> weights_;              // [worker] written in gather_
  // [worker] of its own, then added to its merge time
  std::vector<std::chrono::nanoseconds> contributionTimes_;
  std::vector<std::chrono::nanoseconds> mergeTimes_;  // [worker] written by its worker before merged_
  std::vector<std::int64_t> bytes_;                   // [worker] likewise
  Meeting meeting_, previous_;                        // written in gather_; but see addPenalty
  std::atomic<bool> penaltyAdded_{false};             // reset in gather_
  bool settled_ = true;                               // written in gather_ and reduced_
  std::int64_t quota_;                                // likewise
  std::int64_t meetings_ = 0;                         // likewise
  std::int64_t epoch_, epochFirstIteration_;          // likewise

  std::function<void(int)> errand_;  // coordinator, while the workers wait at resumed_

  std::atomic<bool> failed_{false};
  mutable std::mutex failureMutex_;
  std::exception_ptr failure_;  // guarded by failureMutex_
};

}  // namespace muster
