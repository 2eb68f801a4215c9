#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/core/optim/schedule.h"
#include "muster/parallel/training/merge_shares.h"
#include "muster/parallel/training/node_place.h"
#include "muster/parallel/training/round_messages.h"
#include "muster/parallel/training/round_plans.h"
#include "muster/parallel/training/round_transaction.h"

namespace muster {

/// What the rounds of a fit need.
struct RoundOptions {
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

/// How the rounds of one `fit()` end: keeps what workers contribute, decides with the other nodes, commits
/// what the workers have carried out, and plans the next round. No thread waits here, except for other nodes.
/// Used by one thread at a time, while all workers wait or, with arrivals, at a landing.
class RoundDecisions {
 public:
  /// @param place  this node's workers. @param start  the ledger from which the run begins.
  RoundDecisions(const NodePlace& place, const RoundOptions& options, Ledger start, MergeShares& shares);

  /// The ledger from which the run has begun. Thread-safe.
  const Ledger& start() const { return start_; }
  /// Whether workers do not wait for each other at landings. Thread-safe.
  bool landsAlone() const { return landsAlone_; }

  /// Call it first. @throws SavedStateError if a checkpoint's plan is impossible.
  void prepare();
  /// Plans the first round, unless a checkpoint has its plan. Call it when the learning rate is known.
  /// @param epochs  to train. @throws InvalidArgument if the strategy's plan is impossible.
  void begin(std::int64_t epochs);

  /// What a worker of this node has trained since its last merge. The worker writes it before it waits.
  Contribution& of(int worker) { return contributions_[static_cast<std::size_t>(worker)]; }
  /// A worker arrives at a landing while others train.
  void arrive(int worker, const Contribution& mine);
  /// Sends contributions and votes to every node, so that all nodes make the same decision.
  /// @return what the nodes have voted together.
  const Votes& agree(Exchange& exchange, const Votes& own);
  /// Decides the end of a round for which all workers wait.
  void decideRound() { decide({.met = true}); }
  /// Decides a landing while others train.
  void decideLanding() { decide({.met = false}); }
  /// With gradients, once all have merged: now each worker updates its replica, even if another one fails.
  void beginUpdates() { transaction_.allCarryOut(); }
  /// The decision was carried out: commits it, and plans the next round.
  void commit();
  /// Whether the round is the run's last one.
  bool isOver() const;
  /// Whether some node calls listeners at the end of the round.
  bool nodesListen() const { return votes_.listens || result().verdict != Verdict::Continue; }

  const Decision& decision() const { return transaction_.decision(); }
  const RoundResult& result() const { return decision().round; }
  /// What the replicas or merged copies hold: the state after the last round that was carried out.
  const Ledger& ledger() const { return transaction_.ledger(); }
  /// Whether the round has launched a fragment, and whether one has landed.
  bool launched() const { return merges() || ledger().flights.launched(); }
  bool landed() const { return merges() || ledger().flights.landed(); }
  /// What the strategy reports about the last merge.
  const MergeReport& report() const { return plans_.report(); }

  /// Commits the last round if it was carried out. Call it after all threads have ended.
  void close() { transaction_.close(contributions_, shares_.penalty(), shares_.failed()); }
  /// The merge of the last round was lost after its operations had returned. Call it after `close`.
  void loseMerge();

 private:
  bool isResumed() const { return start_.flights.fragments() > 0; }
  bool merges() const { return shares_.localWork() == LocalWork::Gradient; }
  void decide(RoundFacts facts);
  void planNext() { transaction_.ledger().plan = plans_.next(ledger()); }

  const int fragments_;
  Strategy& strategy_;
  MergeShares& shares_;
  const Ledger start_;
  const bool landsAlone_;
  std::vector<Contribution> contributions_;  // [worker]
  RoundTransaction transaction_;
  RoundMessages messages_;
  RoundPlans plans_;
  Votes votes_;
  std::int64_t lastEpoch_ = 0;
};

}  // namespace muster
