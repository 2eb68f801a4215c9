#pragma once

#include <atomic>
#include <exception>

#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/training/batch_queues.h"
#include "muster/parallel/training/first_failure.h"
#include "muster/parallel/training/rounds.h"
#include "muster/parallel/training/strategy_failure.h"

namespace muster {

/// What the threads of one `fit()` share.
struct FitRun {
  /// @param batches  that circulate between the free queue and the workers' queues.
  /// @param exchange  is aborted by a failure; nullptr: none.
  FitRun(const NodePlace& where, std::span<const std::unique_ptr<Batch>> batches,
         const Rounds::Options& options, Exchange* exchange)
      : place(where),
        queues(where.local, batches, onWallClock(options.strategy, where.workers())),
        peers(where.local),
        rounds(where, options, peers),
        exchange_(exchange) {}

  const NodePlace place;

  BatchQueues queues;
  /// Where layers that need every worker's batch add up their sums. A worker leaves it when it has no more
  /// batches in the epoch, and takes part again from the next.
  PeerSums peers;
  Rounds rounds;
  FirstFailure failure;

  /// Whether no thread may begin another batch. After a failure only once the rounds are aborted: a worker
  /// that ended its round before that would have it merged without the batches that were to come.
  bool stopping() const { return rounds.stopAsked() || aborted_; }

  /// Ends the run: the first failure is kept, and every thread is woken. Thread-safe. Arguments as of
  /// FirstFailure.
  template <typename Where>
  void fail(int worker, std::exception_ptr cause, Where where) noexcept {
    failure.set(worker, std::move(cause), where);
    // A merge is carried out by the workers alone: it ends by itself unless one of them has failed. Workers
    // of other nodes have to be told.
    if (exchange_ && (worker >= 0 || place.nodes > 1)) exchange_->abort();
    rounds.abort();
    peers.abort();
    aborted_ = true;
    queues.close();
  }

 private:
  static bool onWallClock(const Strategy& strategy, int workers) {
    const auto arrivals = callStrategy("tell how workers arrive", [&] { return strategy.arrivals(workers); });
    return arrivals && arrivals->wallClock;
  }

  Exchange* const exchange_;
  std::atomic<bool> aborted_{false};
};

}  // namespace muster
