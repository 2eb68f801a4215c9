#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "muster/core/optim/schedule.h"
#include "muster/parallel/runtime/activity.h"
#include "muster/parallel/runtime/barrier.h"
#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/runtime/time_sheet.h"
#include "muster/parallel/strategies/strategy.h"
#include "muster/parallel/training/arrival_gate.h"
#include "muster/parallel/training/arrivals.h"
#include "muster/parallel/training/fragment_flights.h"
#include "muster/parallel/training/node_place.h"
#include "muster/parallel/training/resumption.h"
#include "muster/parallel/training/round_result.h"

namespace muster {

/// A worker at the end of a round.
struct Participant {
  int worker = 0;
  Exchange& exchange;
  Context& context;
  TimeSheet& times;
  Activity& activity;
};

/// The rounds of one `fit()`: all workers wait for each other at the end of each, merge, and go on together.
///
///     contribution -> [gathered: the last one plans] -> each merges its share
///                  -> with gradients: [reduced] -> each updates its replica
///                  -> [merged] -> listeners -> [resumed]
///
/// Workers with arrivals wait for each other at each landing (on the wall clock once they have finished the
/// step in progress), or only at the end of an epoch: then the worker whose arrival completes a landing
/// carries it out while others train.
class Rounds {
 public:
  /// What the rounds of a fit need.
  struct Options {
    Strategy& strategy;
    std::atomic<bool>& stop;
    const Schedule& learningRate;
    bool coordinatorJoinsEveryRound = false;
    bool meetAtLandings = true;
    std::int64_t firstIteration = 0, firstEpoch = 0;
    const Resumption& resumed;
    std::chrono::nanoseconds patience{0};  ///< before a worker that waits for others sleeps; see Barrier
    /// Fills the user's model with the last merge, while all workers wait; null where replicas are on
    /// devices.
    std::function<void()> keepLastMerge = {};
    /// Whether the run is to end for now at the end of the round, on all nodes; null: never.
    const std::atomic<bool>* regroup = nullptr;
  };
  /// @param place  of the workers here, which wait for each other at barriers, and for those of other nodes
  /// over the network.
  /// @param peers  all workers take part in it again when an epoch begins.
  Rounds(const NodePlace& place, const Options& options, PeerSums& peers);

  bool stopAsked() const { return options_.stop; }
  std::int64_t firstEpoch() const { return options_.firstEpoch; }
  /// Iterations that were finished when the first epoch began, or after the stop that it is resumed from.
  std::int64_t firstIteration() const;
  /// Arrivals: landings of the first epoch that were carried out before the training was resumed.
  std::int64_t firstLandings() const;
  LocalWork localWork() const { return strategy_.localWork(); }
  /// Whether workers are to say how large the numbers of their replicas are.
  bool looksAtReplicas() const { return options_.keepLastMerge && strategy_.extrapolates(); }
  /// Null where workers wait for each other.
  const Arrivals* arrivals() const { return arrivals_ ? &*arrivals_ : nullptr; }

  /// Where the first epoch begins.
  const EpochPosition& firstPosition() const { return options_.resumed.position; }

  /// Before the workers start. @throws InvalidArgument for a strategy that plans what cannot be.
  void start();

  // For workers.

  /// What the worker has trained that was not merged before the training was resumed.
  Contribution begunWith(int worker) const;
  /// The worker's iterations in the round, or the most that they can be. Between the ends of rounds only.
  std::int64_t iterations(int worker) const;
  /// Iterations that were finished when the epoch in progress began.
  std::int64_t epochIteration() const { return epochIteration_; }
  /// On the wall clock: whether a worker has arrived, and the others come after their step in progress.
  bool landingDue() const { return landingDue_; }
  /// Whether the worker's last contribution was merged. Likewise.
  bool landed(int worker) const { return !arrivals_ || landed_[static_cast<std::size_t>(worker)] != 0; }
  /// Stages the merge of a worker that trains alone, so that it continues before its round's scores are read.
  /// Its next `end` is with a contribution that says so, and its verdict is Continue.
  /// @return false if the round has to end first.
  bool stage(const Participant& who);
  /// Whether a round may be merged before the scores of its last steps are read.
  bool mergesBeforeScores(const Participant& who) const {
    return !arrivals_ && localWork() == LocalWork::Step && strategy_.mergesBeforeScores() &&
           who.exchange.guardsMerges();
  }
  /// Prepares what a worker contributes, once it has trained.
  void contribute(const Participant& who, double weight);
  /// A worker's part in the end of a round: waits for the others, merges its share, waits again.
  /// @param update  `double update(const RoundResult&)`: if local work is a gradient and the round merges,
  ///                called after the merge; updates the worker's replica. @return the penalty, the same for
  ///                all workers.
  /// @param readScore  `void readScore()`: of a late contribution, called when its merge has been enqueued:
  ///                   adds the score to `contribution`. If it throws, the merge changed nothing.
  template <typename Update, typename ReadScore>
  RoundEnd end(const Participant& who, const Contribution& contribution, Update update, ReadScore readScore) {
    landed_[static_cast<std::size_t>(who.worker)] = 0;
    noteArrival(who.worker, contribution);
    if (gate_ && !contribution.ended && !stopAsked()) return {.verdict = arrive(who, contribution)};
    if (!gather(who, contribution)) return {};
    if (result_.merging) {
      merge(who);
      if (contribution.late) {
        readScore();
        takeScore(who, contribution);
      }
      if (localWork() == LocalWork::Gradient) {
        if (!awaitReduced(who)) return {};
        addPenalty(update(result_));
        updated_[static_cast<std::size_t>(who.worker)] = 1;
      }
    }
    return leave(who);
  }

  // For the coordinator, the thread that called `fit()`.

  /// Waits for the end of the next round that needs it. @return false if the run was aborted.
  bool await() {
    return merged_.arrive([this] { planNextRound(); });
  }
  /// Lets the workers continue after such a round.
  void resume() { resumed_.arrive(); }
  /// While all workers wait at the end of such a round: has each call `task(worker)` on its thread, which
  /// must not throw. @return false if the run was aborted: then no worker does.
  bool beginTask(std::function<void(int)> task);
  /// Once all workers have done it.
  void endTask();

  // Results: for the coordinator between `await` and `resume`.

  const RoundResult& result() const { return result_; }
  /// What is trained of the epoch in progress.
  EpochPosition position() const;
  /// Whether the run has ended for now, by `Options::regroup` of some node.
  bool regrouping() const { return regrouping_; }
  /// Between `await` and `resume`, or after all threads have ended.
  RoundsState state() const;
  /// The longest part in the merge.
  std::chrono::nanoseconds mergeTime() const;
  /// Bytes that a contributor had to send, on average.
  std::int64_t bytes() const;
  MergeKind kind() const { return strategy_.kind(); }
  double divergence() const { return strategy_.divergence(); }
  std::span<const MergeValue> values() const { return values_; }

  /// The last round whose result replicas or merged copies hold, and how many there were: an abort may come
  /// between the reduction of gradients and the update. As `result`, or after all threads have ended.
  const RoundResult& committed() const { return isCommitted() ? result_ : previous_; }
  std::int64_t committedRounds() const { return isCommitted() ? rounds_ : rounds_ - 1; }
  /// What is trained then of the epoch in progress. Not of a strategy with arrivals.
  EpochPosition committedPosition() const;
  /// Of an update that would not leave finite numbers: all replicas, which are equal, refuse it, and stay as
  /// they are. Thread-safe.
  void refuseUpdate() { refused_ = true; }
  /// Whether the strategy has failed in the middle of a merge: merged copies hold parts of it. After all
  /// threads have ended.
  bool mergeFailed() const { return mergeFailed_; }
  /// Whether the worker's replica is ahead of `committed`: it was updated in a round whose merge has failed.
  bool ahead(int worker) const { return mergeFailed_ && updated_[static_cast<std::size_t>(worker)] != 0; }

  /// Wakes all who wait, now and later. Thread-safe.
  void abort();

 private:
  bool onWallClock() const { return arrivals_ && arrivals_->onWallClock(); }
  void noteArrival(int worker, const Contribution& contribution);
  /// What the worker has trained that is not merged. At the end of a round where all have met.
  Contribution unmerged(std::size_t worker) const {
    return arrivals_ && landed_[worker] == 0 ? contributions_[worker] : Contribution{};
  }
  EpochPosition trainedPosition() const;
  // The parts of a round's end, in their order.
  bool gather(const Participant& who, const Contribution& contribution);
  void agree(Exchange& exchange);
  void agreeWithNodes(Exchange& exchange);
  void plan(bool met);
  void takeScore(const Participant& who, const Contribution& contribution);
  RoundResult nextResult(bool met);
  void planNextRound();
  void requirePlan() const;
  void merge(const Participant& who);
  bool awaitReduced(const Participant& who);
  void addPenalty(double penalty);
  RoundEnd leave(const Participant& who);
  bool awaitResume(int worker);
  // A worker alone, at its arrival.
  Verdict arrive(const Participant& who, const Contribution& contribution);
  std::span<const Arrival> land(const Participant& who);

  Round round() const;
  bool isCommitted() const { return committed_ && !refused_ && !mergeFailed_; }

  const NodePlace place_;
  const Options options_;
  Strategy& strategy_;
  PeerSums& peers_;
  std::optional<Arrivals> arrivals_;  // written where a round is planned, as what follows
  std::optional<ArrivalGate> gate_;   // if workers do not wait at landings

  Barrier gathered_, reduced_, mergedAlone_;  // the workers
  Barrier merged_, resumed_;                  // the workers and the coordinator
  // [worker] written by its worker before gathered_, or in it; late scores before mergedAlone_ or merged_
  std::vector<Contribution> contributions_;
  // [worker] of its own, then added to its merge time
  std::vector<std::chrono::nanoseconds> contributionTimes_;
  std::vector<std::chrono::nanoseconds> mergeTimes_;  // [worker] written by its worker before merged_
  std::vector<std::int64_t> bytes_;                   // [worker] likewise
  std::vector<char> updated_;                         // [worker] likewise; its replica, in this round

  // Written in gathered_, by the worker that arrives last; or at landings, by one worker at a time.
  std::vector<std::int64_t> counts_;          // [worker] batches of this run in the epoch that are merged
  std::vector<std::int64_t> previousCounts_;  // as they were before the round that `result_` is of
  std::vector<double> weights_;               // [worker]
  // What this node and each node brings: its workers' contributions, and one more that `ended` if it stops,
  // and is `staged` if it regroups.
  std::vector<Contribution> own_, all_;
  bool stopping_ = false;          // some node was asked to
  bool regrouping_ = false;        // likewise, for now
  std::vector<char> landed_;       // [worker] whether its contribution was merged
  RoundResult result_, previous_;  // but see addPenalty
  // Written in mergedAlone_ or merged_, by the last to arrive.
  RoundPlan plan_;           // of the round in progress
  FragmentFlights flights_;  // also in gathered_
  TrainingProgress progress_;
  std::vector<MergeValue> values_;  // of the round that has ended
  bool committed_ = true;           // also in reduced_
  bool late_ = false;               // written in gathered_: some worker's last score is read after the merge
  std::int64_t rounds_ = 0;
  std::int64_t epoch_;
  std::int64_t epochIteration_;  // iterations finished when it began

  std::atomic<bool> landingDue_{false};    // reset in gathered_
  std::atomic<bool> penaltyAdded_{false};  // reset in gathered_
  std::atomic<bool> mergeFailed_{false};
  std::atomic<bool> refused_{false};
  std::function<void(int)> task_;  // coordinator, while the workers wait at resumed_
};

}  // namespace muster
