#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/core/optim/schedule.h"
#include "muster/parallel/training/merge_shares.h"
#include "muster/parallel/training/node_place.h"

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

/// The ledger of a run, and the decision about the round that ends: made, carried out by the workers, then
/// committed or dropped. Used by one thread at a time.
class RoundTransaction {
 public:
  explicit RoundTransaction(const Ledger& start) { decisions_[committed_].after = start; }
  /// Before the first round: allocates what rounds need, and plans the first arrivals, if there are any.
  /// @throws InvalidArgument for an impossible number of fragments; SavedStateError for another one than that
  ///         of the checkpoint from which the ledger was resumed.
  void begin(int fragments);

  /// The ledger after the last committed round.
  const Ledger& ledger() const { return decisions_[committed_].after; }
  /// For what changes between two rounds: the plan, and arrivals of single workers.
  Ledger& ledger() { return decisions_[committed_].after; }
  /// The open decision, or the last committed one.
  const Decision& decision() const { return isOpen() ? decisions_[1 - committed_] : decisions_[committed_]; }

  /// Opens a decision. If it throws, none is open.
  void decide(std::span<const Contribution> contributions, const Votes& votes, const RoundFacts& facts);
  /// From now on only a failed merge or a refused update can prevent that the round is carried out.
  void allCarryOut() { stage_ = Stage::CarriedOut; }
  /// Replicas and merged copies hold the round's result, so its ledger becomes the committed one. Before,
  /// adds late scores; after it, begins the next round, or epoch, of workers that arrive one at a time.
  /// @param contributions  those of `decide`, now with all scores.
  /// @param penalty  of the updates after a merge of gradients; else 0.
  void commit(std::span<const Contribution> contributions, double penalty);
  /// Call it once all threads have ended, with the arguments of `commit`: commits an open decision that was
  /// carried out, drops another one. @param failed  the merge has failed, or the update was refused.
  void close(std::span<const Contribution> contributions, double penalty, bool failed);
  /// The last committed round turns out to be lost: goes back to the ledger before it, unless `decide` was
  /// called since.
  void revoke();

 private:
  enum class Stage { Training, Decided, CarriedOut, Committed };
  bool isOpen() const { return stage_ == Stage::Decided || stage_ == Stage::CarriedOut; }

  std::array<Decision, 2> decisions_;  // the committed one, and the open one or the one before
  std::size_t committed_ = 0;
  Stage stage_ = Stage::Training;
};

/// What nodes send each other at the end of a round, so that all make the same decision: the contributions of
/// their workers, and their votes. Used by one thread at a time.
class RoundMessages {
 public:
  explicit RoundMessages(const NodePlace& place)
      : place_(place),
        own_(static_cast<std::size_t>(place.local)),
        all_(static_cast<std::size_t>(place.workers())) {}

  /// The message of this node. @param contributions  [worker] of all nodes; only this node's are read.
  std::span<const std::byte> write(std::span<const Contribution> contributions, const Votes& votes) {
    for (int l = 0; l < place_.local; ++l)
      own_[static_cast<std::size_t>(l)] = {contributions[static_cast<std::size_t>(place_.worker(l))], votes};
    return std::as_bytes(std::span(own_));
  }
  /// Room for the messages of all nodes, in node order.
  std::span<std::byte> room() { return std::as_writable_bytes(std::span(all_)); }
  /// Reads what `room` has received. @param contributions  [worker] receives those of all nodes.
  /// @return the votes of all nodes together.
  Votes read(std::span<Contribution> contributions) const {
    const auto local = static_cast<std::size_t>(place_.local), nodes = static_cast<std::size_t>(place_.nodes);
    Votes together;
    for (std::size_t w = 0; w < all_.size(); ++w) {
      const auto& [contribution, votes] = all_[w % nodes * local + w / nodes];
      contributions[w] = contribution;
      together.stop |= votes.stop;
      together.pause |= votes.pause;
      together.listens |= votes.listens;
      together.measures |= votes.measures;
    }
    return together;
  }

 private:
  /// The contribution of one worker, with the votes of its node.
  struct Item {
    Contribution contribution;
    Votes votes;
  };
  const NodePlace place_;
  std::vector<Item> own_;  // [local worker]
  std::vector<Item> all_;  // [node][local worker]
};

/// How the rounds of one `fit()` end: keeps what workers contribute, decides with the other nodes, commits
/// what the workers have carried out, and lets the strategy report and plan the next round. No thread waits
/// here, except for other nodes.
/// Used by one thread at a time, while all workers wait or, with arrivals, at a landing.
class RoundDecisions {
 public:
  /// @param place  this node's workers. @param start  the ledger from which the run begins.
  RoundDecisions(const NodePlace& place, const RoundOptions& options, Ledger start, MergeShares& shares);

  /// The ledger from which the run has begun. Thread-safe.
  const Ledger& start() const { return start_; }
  /// Thread-safe, as `landsAlone`.
  const RoundOptions& options() const { return options_; }
  /// Whether workers do not wait for each other at landings.
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
  /// Decides the end of a round. @param met  all workers wait; false: a landing while others train.
  void decide(bool met);
  /// With gradients, once all have merged: now each worker updates its replica, even if another one fails.
  void beginUpdates() { transaction_.allCarryOut(); }
  /// The decision was carried out: commits it, and plans the next round.
  void commit();
  /// Whether the round is the run's last one.
  bool isOver() const;
  /// Whether some node calls listeners at the end of the round.
  bool nodesListen() const { return votes_.listens || verdict() != Verdict::Continue; }

  const Decision& decision() const { return transaction_.decision(); }
  const RoundResult& result() const { return decision().round; }
  Verdict verdict() const { return decision().after.verdict; }
  /// What the replicas or merged copies hold: the state after the last round that was carried out.
  const Ledger& ledger() const { return transaction_.ledger(); }
  /// Whether the round has launched a fragment, and whether one has landed.
  bool launched() const { return merges() || ledger().flights.launched(); }
  bool landed() const { return merges() || ledger().flights.landed(); }
  /// What the strategy reports about the round before the planned one.
  const MergeReport& report() const { return report_; }

  /// Commits the last round if it was carried out. Call it after all threads have ended.
  void close() { transaction_.close(contributions_, shares_.penalty(), shares_.failed()); }
  /// The merge of the last round was lost after its operations had returned. Call it after `close`.
  void loseMerge();

 private:
  bool merges() const { return shares_.localWork() == LocalWork::Gradient; }
  void planNext();

  const RoundOptions options_;
  MergeShares& shares_;
  const Ledger start_;
  const bool landsAlone_;
  std::vector<Contribution> contributions_;  // [worker]
  RoundTransaction transaction_;
  RoundMessages messages_;
  MergeReport report_;
  std::vector<MergeValue> values_;  // of the report
  Votes votes_;
  std::int64_t lastEpoch_ = 0;
};

}  // namespace muster
