#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "muster/core/optim/schedule.h"
#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/runtime/rendezvous.h"
#include "muster/parallel/training/arrival_gate.h"
#include "muster/parallel/training/merge_shares.h"
#include "muster/parallel/training/node_place.h"
#include "muster/parallel/training/round_messages.h"
#include "muster/parallel/training/round_plans.h"
#include "muster/parallel/training/round_transaction.h"

namespace muster {

/// The rounds of one `fit()`: after each part of a round workers wait for each other here, and get the order
/// for the next one. What a round's end changes is decided and kept by a RoundTransaction.
///
///     Train -> [the last one decides] -> Merge -> with gradients: Update
///           -> [the last one commits] -> the coordinator's turn, if it joins the round; Visit -> Train or
///           End
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
    std::chrono::nanoseconds patience{0};  ///< how long a waiting worker spins; see Rendezvous
    MergeUndo* undo = nullptr;             ///< see MergeShares
    bool undoesMerges = false;             ///< see MergeShares
    /// If true, the run pauses at the end of the round on all nodes, to regroup; null: never.
    const std::atomic<bool>* regroup = nullptr;
    bool divergenceRead = false;  ///< by a listener
  };
  /// @param place  this node's workers, which wait for each other here and for other nodes over the network.
  /// @param start  the ledger from which the run begins.
  /// @param peers  all workers join it again when an epoch begins.
  Rounds(const NodePlace& place, const Options& options, Ledger start, PeerSums& peers, MergeShares& shares);

  bool stopAsked() const { return options_.stop; }
  /// The ledger from which the run has begun. Thread-safe.
  const Ledger& start() const { return start_; }

  /// Call it first. @throws SavedStateError if a checkpoint's plan is impossible.
  void prepare();
  /// Plans the first round, unless a checkpoint has its plan. Call it before the workers start, when the
  /// learning rate is known. @param epochs  to train. @throws InvalidArgument if the strategy's plan is
  /// impossible.
  void begin(std::int64_t epochs);

  // For workers.

  Order first(int worker) const { return orders_.of(worker); }
  /// The worker has carried out its order. @param mine  what it has trained since its last merge.
  /// @return the next order, for which it waits; End if the run was aborted.
  Order next(const Participant& me, const Contribution& mine);
  /// On the wall clock: whether a worker has arrived, so the others land after their present step.
  bool landingDue() const { return landingDue_; }

  // For the coordinator, the thread that called `fit()`.

  /// Waits for the end of the next round that needs this thread. @return false if the run was aborted.
  bool await() { return rendezvous_.await(); }
  /// After the listeners of such a round: NodeGroup::answer, unless no node has listeners that it calls now.
  /// If the coordinator does not join the round, a worker calls it.
  void answerNodes(Exchange& exchange) const {
    if (place_.nodes > 1 && (votes_.listens || result().verdict != Verdict::Continue))
      exchange.nodeGroup()->answer();
  }
  /// Lets the workers continue after such a round.
  void resume();
  /// At the end of such a round: each worker of this node calls `task(worker)`, which must not throw, on its
  /// thread, and this thread `meanwhile()`, which must not throw either. Returns when all have returned.
  /// @return false if the run was aborted: then neither was called.
  template <typename Meanwhile>
  bool visit(const std::function<void(int)>& task, Meanwhile meanwhile) {
    orders_.giveAll({.what = Order::Do::Visit, .visit = &task});
    if (!rendezvous_.release()) return false;
    meanwhile();
    rendezvous_.awaitArrivals();
    return true;
  }
  /// Whether such a round is the run's last one.
  bool isOver() const;

  // Results: for the coordinator between `await` and `resume`, and after `close`; for workers while they
  // merge or update.

  const Decision& decision() const { return transaction_.decision(); }
  const RoundResult& result() const { return decision().round; }
  /// What the replicas or merged copies hold: the state after the last round that was carried out.
  const Ledger& ledger() const { return transaction_.ledger(); }
  /// Whether the round has launched a fragment, and whether one has landed.
  bool launched() const { return merges() || ledger().flights.launched(); }
  bool landed() const { return merges() || ledger().flights.landed(); }
  /// Of the strategy.
  const MergeReport& report() const { return plans_.report(); }

  // Failures.

  /// Wakes all waiting threads, now and later. Thread-safe.
  void abort();
  /// Commits the last round if it was carried out. Call it after all threads have ended.
  void close();
  /// The merge of the last round was lost after its operations had returned. Call it after `close`.
  void loseMerge();

 private:
  static std::size_t at(const Participant& me) { return static_cast<std::size_t>(me.worker); }
  bool isResumed() const { return start_.flights.fragments() > 0; }
  /// Whether workers do not wait for each other at landings.
  bool landsAlone() const {
    return start_.arrivals && !options_.meetAtLandings && start_.landingsBefore == 0;
  }
  bool onWallClock() const { return start_.arrivals && start_.arrivals->onWallClock(); }
  bool merges() const { return shares_.localWork() == LocalWork::Gradient; }
  /// Whether the coordinator joins the end of the round that was decided.
  bool isJoined() const {
    return options_.coordinatorJoinsEveryRound || result().verdict != Verdict::Continue;
  }
  void bring(const Participant& me, const Contribution& mine);
  // Called by the worker that arrives last.
  Rendezvous::Turn advance(Exchange& exchange, Order::Do done);
  void agree(Exchange& exchange);
  void decide(bool met);
  void commit();
  void planNext() { transaction_.ledger().plan = plans_.next(ledger()); }
  Rendezvous::Turn giveAll(Order::Do what);
  void giveNextRound() { orders_.giveNext(isOver() ? Order::Do::End : Order::Do::Train, ledger()); }
  // Called by one worker alone, at its arrival.
  Order arrive(const Participant& me, const Contribution& mine);
  std::span<const Arrival> land(const Participant& me);

  const NodePlace place_;
  const Options options_;
  Strategy& strategy_;
  PeerSums& peers_;
  MergeShares& shares_;
  const Ledger start_;
  Rendezvous rendezvous_;
  std::optional<ArrivalGate> gate_;  // if workers do not wait at landings
  // [worker] written by its worker before it waits
  std::vector<Contribution> contributions_;

  // Written while all workers wait, or at landings, by one worker at a time.
  RoundOrders orders_;
  RoundTransaction transaction_;
  RoundMessages messages_;
  RoundPlans plans_;
  Votes votes_;
  std::int64_t lastEpoch_ = 0;

  std::atomic<bool> landingDue_{false};
};

}  // namespace muster
