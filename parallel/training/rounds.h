#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/runtime/rendezvous.h"
#include "muster/parallel/training/arrival_gate.h"
#include "muster/parallel/training/round_decisions.h"

namespace muster {

/// What a worker does next in a training. A value: other workers may end further rounds before it is read.
struct Order {
  enum class Do {
    Train,   ///< batches, up to `iterations`
    Merge,   ///< its share of the round's merge
    Update,  ///< with gradients: its replica, with what was merged
    Visit,   ///< call `visit`
    End      ///< the run is over, or was aborted
  };
  /// Finished, over the life of the model.
  struct Counters {
    std::int64_t iteration = 0, epoch = 0;
  };

  Do what = Do::End;
  std::int64_t iterations = 0;            ///< the worker's until the next round's end, or an upper bound
  bool merged = false;                    ///< the worker's contribution was merged
  bool epochOver = false;                 ///< a new epoch begins
  std::optional<Counters> counters = {};  ///< of the replica from now on; nothing: they stay
  /// Called with the worker's index on its node; must not throw.
  const std::function<void(int)>* visit = nullptr;
};

/// The order to train the next round. @param alone  workers do not wait for each other at landings.
Order orderToTrain(const Ledger& ledger, int worker, bool alone);

/// Where the workers of one `fit()` wait: after each part of a round (parallel/README.md, "A fit") they wait
/// for each other here, and get the order for the next one. The one that arrives last decides and commits.
/// What a round's end changes is decided and kept by RoundDecisions.
///
/// With a strategy with arrivals, workers wait for each other at each landing (on the wall clock: after the
/// step in progress), or only at the end of an epoch. In the second case the worker whose arrival completes
/// a landing carries the landing out while others train.
class Rounds {
 public:
  /// @param place  this node's workers, which wait for each other here and for other nodes over the network.
  /// @param peers  all workers join it again when an epoch begins.
  Rounds(const NodePlace& place, RoundDecisions& decisions, PeerSums& peers, MergeShares& shares);

  bool stopAsked() const { return options().stop; }
  /// Plans the first round; see RoundDecisions. Call it before the workers start.
  void begin(std::int64_t epochs);

  // For workers.

  Order first(int worker) const { return orders_[static_cast<std::size_t>(worker)]; }
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
    std::ranges::fill(orders_, Order{.what = Order::Do::Visit, .visit = &task});
    if (!rendezvous_.release()) return false;
    meanwhile();
    rendezvous_.awaitArrivals();
    return true;
  }

  /// Wakes all waiting threads, now and later. Thread-safe.
  void abort();

 private:
  const RoundOptions& options() const { return decisions_.options(); }
  bool onWallClock() const {
    const auto& arrivals = decisions_.start().arrivals;
    return arrivals && arrivals->onWallClock();
  }
  /// Whether the coordinator joins the end of the round that was decided.
  bool isJoined() const {
    return options().coordinatorJoinsEveryRound || decisions_.verdict() != Verdict::Continue;
  }
  void bring(const Participant& me, const Contribution& mine);
  // Called by the worker that arrives last.
  Rendezvous::Turn advance(Exchange& exchange, Order::Do done);
  void decide(Exchange& exchange);
  Rendezvous::Turn giveAll(Order::Do what);
  void giveNextRound();
  void orderToTrain(int worker);
  // Called by one worker alone, at its arrival.
  Order arrive(const Participant& me, const Contribution& mine);
  std::span<const Arrival> land(const Participant& me);

  RoundDecisions& decisions_;
  PeerSums& peers_;
  MergeShares& shares_;
  Rendezvous rendezvous_;
  std::optional<ArrivalGate> gate_;  // if workers do not wait at landings
  std::vector<Order> orders_;        // [worker] written while all workers wait, or by a worker for itself
  std::chrono::nanoseconds listened_{0};  // at the end of the last round, if the coordinator joined it
  std::atomic<bool> landingDue_{false};
};

}  // namespace muster
