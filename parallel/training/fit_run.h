#pragma once

#include <atomic>
#include <exception>
#include <utility>

#include "muster/core/data/data_set_iterator.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/training/batch_queues.h"
#include "muster/parallel/training/first_failure.h"
#include "muster/parallel/training/merge_shares.h"
#include "muster/parallel/training/rounds.h"

namespace muster {

/// What the threads of one `fit()` share.
struct FitRun {
  /// @param start  see RoundDecisions.
  /// @param batches  circulate between the free queue and the workers' queues.
  /// @param exchange  is aborted by a failure; nullptr: none.
  /// @param link  to the other nodes; nullptr: none.
  /// @param batchesByNumber  see `numbered`.
  FitRun(const NodePlace& where, std::span<const std::unique_ptr<Batch>> batches, const RoundOptions& options,
         Ledger start, Exchange* exchange, const NodeLink* link = nullptr,
         const NumberedBatches* batchesByNumber = nullptr)
      : place(where),
        numbered(batchesByNumber),
        queues(where.local, batches, start.arrivals && start.arrivals->onWallClock()),
        peers(where.local),
        shares(options.strategy, options.traits, where.workers(), options.undo, options.undoesMerges),
        decisions(where, options, std::move(start), shares),
        rounds(where, decisions, peers, shares),
        exchange_(exchange),
        link_(link) {}

  const NodePlace place;
  /// If not null, each worker reads its own batches, and the reader only begins the epochs.
  const NumberedBatches* const numbered;

  BatchQueues queues;
  /// Adds up sums for layers that need every worker's batch. A worker leaves when it has no more batches in
  /// the epoch, and takes part again in the next epoch.
  PeerSums peers;
  MergeShares shares;
  RoundDecisions decisions;
  Rounds rounds;
  FirstFailure failure;

  /// Whether threads must not begin another batch. After a failure it is true only once the rounds are
  /// aborted: otherwise a worker could end its round early, and the round would lack its remaining batches.
  bool stopping() const { return rounds.stopAsked() || aborted_; }
  /// Called before a batch: a round is not merged if a node is lost, so its batches need not be trained.
  /// @throws NodeFailure naming the lost node.
  void requireNodes() const {
    if (link_) link_->requireWhole();
  }

  /// Ends the run: keeps the first failure and wakes every thread. Thread-safe. Arguments: see FirstFailure.
  template <typename Where>
  void fail(int worker, std::exception_ptr cause, Where where) noexcept {
    failure.set(worker, std::move(cause), where);
    // Only workers carry out a merge, so it ends by itself unless a worker has failed. Other nodes need
    // the failure.
    if (exchange_ && (worker >= 0 || place.nodes > 1)) exchange_->abort();
    rounds.abort();
    peers.abort();
    aborted_ = true;
    queues.close();
  }

 private:
  Exchange* const exchange_;
  const NodeLink* const link_;
  std::atomic<bool> aborted_{false};
};

}  // namespace muster
