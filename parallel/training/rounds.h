#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/runtime/rendezvous.h"
#include "muster/parallel/training/arrival_gate.h"
#include "muster/parallel/training/round_decisions.h"

namespace muster {

/// Where the workers of one `fit()` wait: after each part of a round they wait for each other here, and get
/// the order for the next one. What a round's end changes is decided and kept by RoundDecisions.
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
  /// @param place  this node's workers, which wait for each other here and for other nodes over the network.
  /// @param peers  all workers join it again when an epoch begins.
  Rounds(const NodePlace& place, const RoundOptions& options, RoundDecisions& decisions, PeerSums& peers,
         MergeShares& shares);

  bool stopAsked() const { return options_.stop; }
  /// Plans the first round; see RoundDecisions. Call it before the workers start.
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
    if (exchange.nodes() > 1 && decisions_.nodesListen()) exchange.nodeGroup()->answer();
  }
  /// Lets the workers continue after such a round. @param listened  what its listeners took, visits included:
  /// workers do not count it as waiting.
  void resume(std::chrono::nanoseconds listened = {});
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

  /// Wakes all waiting threads, now and later. Thread-safe.
  void abort();

 private:
  bool onWallClock() const {
    const auto& arrivals = decisions_.start().arrivals;
    return arrivals && arrivals->onWallClock();
  }
  /// Whether the coordinator joins the end of the round that was decided.
  bool isJoined() const {
    return options_.coordinatorJoinsEveryRound || decisions_.result().verdict != Verdict::Continue;
  }
  void bring(const Participant& me, const Contribution& mine);
  // Called by the worker that arrives last.
  Rendezvous::Turn advance(Exchange& exchange, Order::Do done);
  void decide(Exchange& exchange);
  void commit();
  Rendezvous::Turn giveAll(Order::Do what);
  void giveNextRound();
  // Called by one worker alone, at its arrival.
  Order arrive(const Participant& me, const Contribution& mine);
  std::span<const Arrival> land(const Participant& me);

  const RoundOptions options_;
  RoundDecisions& decisions_;
  PeerSums& peers_;
  MergeShares& shares_;
  Rendezvous rendezvous_;
  std::optional<ArrivalGate> gate_;  // if workers do not wait at landings
  RoundOrders orders_;  // written while all workers wait, or at landings, by one worker at a time
  std::chrono::nanoseconds listened_{0};  // at the end of the last round, if the coordinator joined it
  std::atomic<bool> landingDue_{false};
};

}  // namespace muster
