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
#include "muster/parallel/training/node_place.h"
#include "muster/parallel/training/round_messages.h"
#include "muster/parallel/training/round_transaction.h"

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

/// The rounds of one `fit()`: all workers wait for each other at the end of each, merge, and continue. What a
/// round's end changes is decided and kept by a RoundTransaction; this class makes threads wait and calls the
/// strategy.
///
///     contribution -> [gathered: the last one decides] -> each merges its share
///                  -> with gradients: [reduced] -> each updates its replica
///                  -> [merged: the last one commits] -> listeners -> [resumed]
///
/// With a strategy with arrivals, workers wait for each other at each landing (on the wall clock: after the
/// step in progress), or only at the end of an epoch. In the second case the worker whose arrival completes
/// a landing carries the landing out while others train.
class Rounds {
 public:
  /// What the rounds of a fit need.
  struct Options {
    Strategy& strategy;
    const StrategyTraits& traits;  ///< of the strategy
    std::atomic<bool>& stop;
    Schedule learningRate;
    bool coordinatorJoinsEveryRound = false;
    bool meetAtLandings = true;
    std::chrono::nanoseconds patience{0};  ///< how long a waiting worker spins before it sleeps; see Barrier
    bool undoesMerges = false;             ///< the exchange can undo a merge of numbers that overflow
    /// If true, the run pauses at the end of the round on all nodes, to regroup; null: never.
    const std::atomic<bool>* regroup = nullptr;
    bool divergenceRead = false;  ///< by a listener
  };
  /// @param place  this node's workers, which wait for each other at barriers and for other nodes over the
  ///               network.
  /// @param start  the ledger from which the run begins.
  /// @param peers  all workers join it again when an epoch begins.
  Rounds(const NodePlace& place, const Options& options, Ledger start, PeerSums& peers);

  bool stopAsked() const { return options_.stop; }
  /// The ledger from which the run has begun. Thread-safe.
  const Ledger& start() const { return start_; }
  LocalWork localWork() const { return options_.traits.localWork; }
  /// Whether workers must report the largest magnitude in their replicas.
  bool looksAtReplicas() const { return options_.undoesMerges && options_.traits.extrapolates; }

  /// Call it first. @throws SavedStateError if a checkpoint's plan is impossible.
  void prepare();
  /// Plans the first round, unless a checkpoint has its plan. Call it before the workers start, when the
  /// learning rate is known. @throws InvalidArgument if the strategy's plan is impossible.
  void planFirst();

  // For workers.

  /// What the worker begins with, as if a round had just ended.
  RoundEnd begin(int worker) const { return endFor(gate_ ? start_ : ledger(), worker); }
  /// On the wall clock: whether a worker has arrived, so the others land after their present step.
  bool landingDue() const { return landingDue_; }
  /// Whether a round may be merged before the scores of its last steps are read.
  bool mergesBeforeScores(const Participant& participant) const {
    return !start_.arrivals && localWork() == LocalWork::Step && options_.traits.mergesBeforeScores &&
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
    noteArrival(participant.worker, contribution);
    if (gate_ && !contribution.ended && !stopAsked()) return arrive(participant, contribution);
    if (!gather(participant, contribution)) return {};
    if (result().merging) {
      merge(participant);
      if (contribution.late) {
        readScore();
        contributions_[at(participant)] = contribution;
      }
      if (localWork() == LocalWork::Gradient) {
        if (!awaitReduced(participant)) return {};
        work_[at(participant)].penalty = update(result());
      }
    }
    return leave(participant);
  }

  // For the coordinator, the thread that called `fit()`.

  /// Waits for the end of the next round that needs this thread. @return false if the run was aborted.
  bool await() {
    return merged_.arrive([this] { commit(); });
  }
  /// After the listeners of such a round: Exchange::answer, unless no node has listeners that it calls now.
  /// If the coordinator does not join the round, a worker calls it.
  void answerNodes(Exchange& exchange) const {
    if (place_.nodes > 1 && (votes_.listens || result().verdict != Verdict::Continue)) exchange.answer();
  }
  /// Lets the workers continue after such a round.
  void resume() { resumed_.arrive(); }
  /// While all workers wait at the end of such a round: makes each worker call `task(worker)`, which must
  /// not throw, on its thread. @return false if the run was aborted: then no worker calls it.
  bool beginTask(std::function<void(int)> task);
  /// Waits until all workers have finished the task.
  void endTask();

  // Results: for the coordinator between `await` and `resume`, and after `close`.

  const RoundResult& result() const { return transaction_.decision().round; }
  /// What the replicas or merged copies hold: the state after the last round that was carried out.
  const Ledger& ledger() const { return transaction_.ledger(); }
  /// The time of the worker that took longest in the merge.
  std::chrono::nanoseconds mergeTime() const;
  /// Bytes that a contributor had to send, on average.
  std::int64_t bytes() const;
  /// Whether the round has launched a fragment, and whether one has landed.
  bool launched() const { return localWork() == LocalWork::Gradient || ledger().flights.launched(); }
  bool landed() const { return localWork() == LocalWork::Gradient || ledger().flights.landed(); }
  /// Of the strategy.
  const MergeReport& report() const { return report_; }

  // Failures.

  /// Call it if an update would give numbers that are not finite: all replicas are equal, so all refuse the
  /// update and none changes. Thread-safe.
  void refuseUpdate();
  /// Wakes all waiting threads, now and later. Thread-safe.
  void abort();
  /// Commits the last round if it was carried out. Call it after all threads have ended.
  void close();
  /// Whether a merge has failed: merged copies may hold a part of its result. Call this and what follows
  /// after `close`.
  bool mergeFailed() const { return loss_ == Loss::Merge; }
  /// Whether Exchange::revert undoes that merge.
  bool mergeKept() const { return mergeKept_; }
  /// The merge of the last round was lost after its verbs had returned.
  void loseMerge();
  /// Whether the worker's replica is ahead of the ledger: it was updated in a round whose merge has failed.
  bool ahead(int worker) const {
    return mergeFailed() && work_[static_cast<std::size_t>(worker)].penalty.has_value();
  }

 private:
  bool isResumed() const { return start_.flights.fragments() > 0; }
  /// What a failure has made of the last round.
  enum class Loss { None, Merge, Update };
  /// A worker's part in the end of a round.
  struct MergeWork {
    std::chrono::nanoseconds contributing{0}, merging{0};
    std::int64_t bytes = 0;
    std::optional<double> penalty;  // of its update; none: it has not updated its replica
  };

  static std::size_t at(const Participant& participant) {
    return static_cast<std::size_t>(participant.worker);
  }
  bool onWallClock() const { return start_.arrivals && start_.arrivals->onWallClock(); }
  void noteArrival(int worker, const Contribution& contribution);
  RoundEnd endFor(const Ledger& now, int worker) const;
  /// Whether the coordinator joins the end of the round that was decided.
  bool joined() const { return options_.coordinatorJoinsEveryRound || result().verdict != Verdict::Continue; }
  // The stages of a round's end, in order.
  bool gather(const Participant& participant, const Contribution& contribution);
  void agree(Exchange& exchange);
  void decide(Exchange& exchange, bool met);
  void keepLastMerge(Exchange& exchange);
  /// Calls a part of a merge. If it throws, the merge has failed.
  template <typename Merge>
  void orLoseMerge(Merge merge) {
    try {
      merge();
    } catch (...) {
      loss_ = Loss::Merge;
      throw;
    }
  }
  void merge(const Participant& participant);
  bool awaitReduced(const Participant& participant);
  RoundEnd leave(const Participant& participant);
  void commit();
  void planNext();
  bool awaitResume(int worker);
  // Called by one worker alone, at its arrival.
  RoundEnd arrive(const Participant& participant, const Contribution& contribution);
  std::span<const Arrival> land(const Participant& participant);

  double penalty() const;

  const NodePlace place_;
  const Options options_;
  Strategy& strategy_;
  PeerSums& peers_;
  const Ledger start_;
  std::optional<ArrivalGate> gate_;  // if workers do not wait at landings

  Barrier gathered_, reduced_, mergedAlone_;  // for the workers
  Barrier merged_, resumed_;                  // for the workers and the coordinator
  // [worker] written by its worker before or in gathered_; with late scores before mergedAlone_ or merged_
  std::vector<Contribution> contributions_;
  std::vector<MergeWork> work_;  // [worker] written by its worker before mergedAlone_ or merged_

  // Written at barriers, by the thread that arrives last; or at landings, by one worker at a time.
  RoundTransaction transaction_;
  RoundMessages messages_;
  Votes votes_;
  MergeReport report_;              // of the round that has ended
  std::vector<MergeValue> values_;  // of the report
  bool mergeKept_ = false;

  std::atomic<bool> landingDue_{false};  // reset in gathered_
  std::atomic<Loss> loss_{Loss::None};
  std::function<void(int)> task_;  // written by the coordinator while the workers wait at resumed_
};

}  // namespace muster
