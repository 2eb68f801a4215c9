#pragma once

#include <array>

#include "muster/parallel/training/ledger.h"

namespace muster {

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

}  // namespace muster
