#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
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

  // See Exchange.
  void arriveAtExchange() const { exchange.arrive(worker, context); }
  void enqueueAfterVerbs() const { exchange.enqueueAfter(worker, context); }
};

/// The rounds of one `fit()`: all workers wait for each other at the end of each, merge, and continue.
///
///     contribution -> [gathered: the last one plans] -> each merges its share
///                  -> with gradients: [reduced] -> each updates its replica
///                  -> [merged] -> listeners -> [resumed]
///
/// With a strategy with arrivals, workers wait for each other at each landing (on the wall clock: after the
/// step in progress), or only at the end of an epoch. In the second case the worker whose arrival completes
/// a landing carries the landing out while others train.
class Rounds {
 public:
  /// What the rounds of a fit need.
  struct Options {
    Strategy& strategy;
    std::atomic<bool>& stop;
    Schedule learningRate;
    bool coordinatorJoinsEveryRound = false;
    bool meetAtLandings = true;
    std::int64_t firstIteration = 0, firstEpoch = 0;
    const Resumption& resumed;
    std::chrono::nanoseconds patience{0};  ///< how long a waiting worker spins before it sleeps; see Barrier
    bool undoesMerges = false;             ///< the exchange can undo a merge of numbers that overflow
    /// If true, the run pauses at the end of the round on all nodes, to regroup; null: never.
    const std::atomic<bool>* regroup = nullptr;
    bool divergenceRead = false;  ///< by a listener
  };
  /// @param place  this node's workers, which wait for each other at barriers and for other nodes over the
  ///               network.
  /// @param peers  all workers join it again when an epoch begins.
  Rounds(const NodePlace& place, const Options& options, PeerSums& peers);

  bool stopAsked() const { return options_.stop; }
  std::int64_t firstEpoch() const { return options_.firstEpoch; }
  /// Iterations that were finished when the first epoch began, or after the stop that it is resumed from.
  std::int64_t firstIteration() const;
  /// With arrivals: landings of the first epoch that were carried out before the training was resumed.
  std::int64_t firstLandings() const;
  LocalWork localWork() const { return strategy_.localWork(); }
  /// Whether workers must report the largest magnitude in their replicas.
  bool looksAtReplicas() const { return options_.undoesMerges && strategy_.extrapolates(); }
  /// Null for a strategy without arrivals.
  const Arrivals* arrivals() const { return arrivals_ ? &*arrivals_ : nullptr; }

  /// The position at which the first epoch begins.
  const EpochPosition& firstPosition() const { return options_.resumed.position; }

  /// Call it before the workers start. @throws InvalidArgument if the strategy's plan is impossible,
  ///         SavedStateError if a checkpoint's is.
  void start();

  // For workers.

  /// What the worker trained before the resumption and is not merged yet.
  Contribution begunWith(int worker) const;
  /// The worker's iterations in the round, or an upper bound. Valid between the ends of rounds only.
  std::int64_t iterations(int worker) const;
  /// Iterations that were finished when the epoch in progress began.
  std::int64_t epochIteration() const { return epochIteration_; }
  /// On the wall clock: whether a worker has arrived, so the others land after their present step.
  bool landingDue() const { return landingDue_; }
  /// Whether the worker's last contribution was merged; true if the strategy has no arrivals.
  bool landed(int worker) const { return !arrivals_ || landed_[static_cast<std::size_t>(worker)] != 0; }
  /// Stages the merge of a worker that trains alone, so that it continues before its round's scores are read.
  /// The worker's next `end` takes a contribution with `staged` set, and returns Continue.
  /// @return false if the round has to end first.
  bool stage(const Participant& participant);
  /// Whether a round may be merged before the scores of its last steps are read.
  bool mergesBeforeScores(const Participant& participant) const {
    return !arrivals_ && localWork() == LocalWork::Step && strategy_.mergesBeforeScores() &&
           participant.exchange.guardsMerges();
  }
  /// Prepares the contribution of a worker that has trained.
  void contribute(const Participant& participant, double weight);
  /// A worker's part in the end of a round: waits for the others, merges its share, waits again.
  /// @param update  `double update(const RoundResult&)`: if local work is a gradient and the round merges,
  ///                called after the merge; updates the worker's replica. @return the penalty, the same for
  ///                all workers.
  /// @param readScore  `void readScore()`: called for a late contribution once its merge is enqueued; adds
  ///                   the score to `contribution`. If it throws, the merge changed nothing.
  template <typename Update, typename ReadScore>
  RoundEnd end(const Participant& participant, const Contribution& contribution, Update update,
               ReadScore readScore) {
    landed_[static_cast<std::size_t>(participant.worker)] = 0;
    noteArrival(participant.worker, contribution);
    if (gate_ && !contribution.ended && !stopAsked()) return {.verdict = arrive(participant, contribution)};
    if (!gather(participant, contribution)) return {};
    if (result_.merging) {
      merge(participant);
      if (contribution.late) {
        readScore();
        takeScore(participant, contribution);
      }
      if (localWork() == LocalWork::Gradient) {
        if (!awaitReduced(participant)) return {};
        addPenalty(update(result_));
        updated_[static_cast<std::size_t>(participant.worker)] = 1;
      }
    }
    return leave(participant);
  }

  // For the coordinator, the thread that called `fit()`.

  /// Waits for the end of the next round that needs this thread. @return false if the run was aborted.
  bool await() {
    return merged_.arrive([this] { planNextRound(); });
  }
  /// After the listeners of such a round: Exchange::answer, unless no node has listeners that it calls now.
  /// If the coordinator does not join the round, a worker calls it.
  void answerNodes(Exchange& exchange) const {
    if (place_.nodes > 1 && (listening_ || result_.verdict != Verdict::Continue)) exchange.answer();
  }
  /// Lets the workers continue after such a round.
  void resume() { resumed_.arrive(); }
  /// While all workers wait at the end of such a round: makes each worker call `task(worker)`, which must
  /// not throw, on its thread. @return false if the run was aborted: then no worker calls it.
  bool beginTask(std::function<void(int)> task);
  /// Waits until all workers have finished the task.
  void endTask();

  // Results: for the coordinator between `await` and `resume`.

  const RoundResult& result() const { return result_; }
  /// The trained part of the epoch in progress.
  EpochPosition position() const;
  /// [worker] Examples that were trained and merged in this run.
  const std::vector<std::int64_t>& examples() const { return examples_; }
  /// Whether the run has paused because some node set `Options::regroup`.
  bool regrouping() const { return regrouping_; }
  /// Valid between `await` and `resume`, or after all threads have ended.
  RoundsState state() const;
  /// The time of the worker that took longest in the merge.
  std::chrono::nanoseconds mergeTime() const;
  /// Bytes that a contributor had to send, on average.
  std::int64_t bytes() const;
  MergeKind kind() const { return strategy_.kind(); }
  /// Whether the round has launched a fragment, and whether one has landed.
  bool launched() const { return localWork() == LocalWork::Gradient || flights_.launched(); }
  bool landed() const { return localWork() == LocalWork::Gradient || flights_.landed(); }
  double divergence() const { return strategy_.divergence(); }
  std::span<const MergeValue> values() const { return values_; }

  /// The last round whose result the replicas or merged copies hold, and the number of such rounds: an abort
  /// may come between the reduction of gradients and the update. Valid when `result` is, or after all threads
  /// have ended.
  const RoundResult& committed() const { return isCommitted() ? result_ : previous_; }
  std::int64_t committedRounds() const { return isCommitted() ? rounds_ : rounds_ - 1; }
  /// The trained part of the epoch after that round. Not for a strategy with arrivals.
  EpochPosition committedPosition() const;
  /// Call it if an update would give numbers that are not finite: all replicas are equal, so all refuse the
  /// update and none changes. Thread-safe.
  void refuseUpdate() { refused_ = true; }
  /// Whether the strategy failed during a merge: merged copies may hold a part of its result. Call it after
  /// all threads have ended.
  bool mergeFailed() const { return mergeFailed_; }
  /// Whether Exchange::revert undoes that merge.
  bool mergeKept() const { return mergeKept_; }
  /// The merge of the last round was lost after its verbs had returned. Call it after all threads have ended.
  void loseMerge() { mergeFailed_ = true; }
  /// Whether the worker's replica is ahead of `committed`: it was updated in a round whose merge has failed.
  bool ahead(int worker) const { return mergeFailed_ && updated_[static_cast<std::size_t>(worker)] != 0; }

  /// Wakes all waiting threads, now and later. Thread-safe.
  void abort();

 private:
  bool onWallClock() const { return arrivals_ && arrivals_->onWallClock(); }
  void noteArrival(int worker, const Contribution& contribution);
  /// What the worker trained and is not merged. Valid while all workers are at the barrier of a round's end.
  Contribution unmerged(std::size_t worker) const {
    return arrivals_ && landed_[worker] == 0 ? contributions_[worker] : Contribution{};
  }
  EpochPosition trainedPosition() const;
  // The stages of a round's end, in order.
  bool gather(const Participant& participant, const Contribution& contribution);
  void agree(Exchange& exchange);
  void agreeWithNodes(Exchange& exchange);
  void plan(Exchange& exchange, bool met);
  void keepLastMerge(Exchange& exchange);
  void takeScore(const Participant& participant, const Contribution& contribution);
  RoundResult nextResult(bool met);
  void planNextRound();
  /// @throws InvalidArgument if the plan of the next round is impossible.
  void requirePlan() const;
  void merge(const Participant& participant);
  bool awaitReduced(const Participant& participant);
  void addPenalty(double penalty);
  RoundEnd leave(const Participant& participant);
  bool awaitResume(int worker);
  // Called by one worker alone, at its arrival.
  Verdict arrive(const Participant& participant, const Contribution& contribution);
  std::span<const Arrival> land(const Participant& participant);

  /// Whether the distance of the replicas is measured for listeners, now and then: it takes one more pass
  /// over the parameters.
  bool measuresNow() {
    if (place_.nodes == 1) measuring_ = measurementDue();
    if (!measuring_ || !result_.merging) return false;
    measuredAt_ = std::chrono::steady_clock::now();
    return true;
  }
  bool measurementDue() const {
    constexpr std::chrono::milliseconds kEvery{250};
    return options_.divergenceRead && std::chrono::steady_clock::now() - measuredAt_ >= kEvery;
  }
  Round round() const;
  bool isCommitted() const { return committed_ && !refused_ && !mergeFailed_; }

  const NodePlace place_;
  const Options options_;
  Strategy& strategy_;
  PeerSums& peers_;
  std::optional<Arrivals> arrivals_;  // this and gate_ are written while a round is planned
  std::optional<ArrivalGate> gate_;   // if workers do not wait at landings

  Barrier gathered_, reduced_, mergedAlone_;  // for the workers
  Barrier merged_, resumed_;                  // for the workers and the coordinator
  // [worker] written by its worker before or in gathered_; late scores before mergedAlone_ or merged_
  std::vector<Contribution> contributions_;
  // [worker] time spent in `contribute`; `merge` adds it to mergeTimes_
  std::vector<std::chrono::nanoseconds> contributionTimes_;
  std::vector<std::chrono::nanoseconds> mergeTimes_;  // [worker] written by its worker before merged_
  std::vector<std::int64_t> bytes_;                   // [worker] written when mergeTimes_ is
  std::vector<char> updated_;  // [worker] likewise: whether its replica was updated in this round

  // Written in gathered_, by the worker that arrives last; or at landings, by one worker at a time.
  std::vector<std::int64_t> counts_;          // [worker] batches of this run in the epoch that are merged
  std::vector<std::int64_t> previousCounts_;  // counts_ before the round of `result_`
  std::vector<std::int64_t> examples_;        // [worker] of this run that are merged
  std::vector<double> weights_;               // [worker]
  // Contributions of this node and of all nodes: for each node one per worker, and one more that has `ended`
  // set if the node stops, `staged` if it regroups, `late` if a listener there waits for a measurement, and
  // `listening`.
  std::vector<Contribution> own_, all_;
  bool stopping_ = false;          // some node was asked to stop
  bool regrouping_ = false;        // some node was asked to regroup
  bool measuring_ = false;         // on some node a measurement is due
  bool listening_ = false;         // some node calls listeners in every round
  std::vector<char> landed_;       // [worker] whether its contribution was merged
  RoundResult result_, previous_;  // addPenalty writes result_, too
  // Written in mergedAlone_ or merged_, by the last thread to arrive.
  RoundPlan plan_;           // of the round in progress
  FragmentFlights flights_;  // also in gathered_
  TrainingProgress progress_;
  std::vector<MergeValue> values_;  // of the round that has ended
  bool committed_ = true;           // also in reduced_
  bool mergeKept_ = false;          // written in gathered_
  bool late_ = false;               // written in gathered_: some worker's last score is read after the merge
  bool measured_ = false;           // likewise: Round::measured
  std::chrono::steady_clock::time_point measuredAt_;
  std::int64_t rounds_ = 0;
  std::int64_t epoch_;
  std::int64_t epochIteration_;  // iterations finished when the epoch began

  std::atomic<bool> landingDue_{false};    // reset in gathered_
  std::atomic<bool> penaltyAdded_{false};  // reset in gathered_
  std::atomic<bool> mergeFailed_{false};
  std::atomic<bool> refused_{false};
  std::function<void(int)> task_;  // written by the coordinator while the workers wait at resumed_
};

}  // namespace muster
