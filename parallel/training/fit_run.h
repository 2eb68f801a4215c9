#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/queue.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/listener.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/runtime/activity.h"
#include "muster/parallel/runtime/first_failure.h"
#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/strategies/any_strategy.h"
#include "muster/parallel/training/merge_shares.h"
#include "muster/parallel/training/resumption.h"
#include "muster/parallel/training/rounds.h"

namespace muster {

class ReplicaSet;
class TaskThread;

/// State that a `fit()` over elastic nodes keeps from one of its parts (generations) to the next.
struct FitParts {
  const std::atomic<bool>* regroup = nullptr;  // see RoundOptions
  Listeners started = {};                      // whose onFitStart was called
  bool ended = false;                          // whether onFitEnd was called
  /// The first batch of epoch 0, read to prepare the model; until it is trained, as an iterator may not be
  /// able to give it again.
  std::optional<Batch> first = {};
};

/// What a training begins with.
struct PreparedFit {
  Resumption resumed = {};
  std::optional<Batch> first = {};  ///< the first batch to train, if it was read to prepare the model
  /// The batches if the workers should read them themselves, without a reader thread; else null.
  const NumberedBatches* numbered = nullptr;
};

/// The parts of the wrapper that a `fit()` uses.
struct FitSetting {
  Trainer& trainer;  // for listeners
  Model& model;
  DataSetIterator& data;
  ReplicaSet& replicas;
  const AnyStrategy& options;                       // of the strategy
  std::span<const std::unique_ptr<Batch>> batches;  // circulate between reader and workers
  const Listeners& listeners;
  TaskThread& reader;
  std::atomic<bool>& stop;
  Activity& caller;   // what the thread that called `fit()` does
  Activity& reading;  // what the reader does
  std::chrono::nanoseconds patience;
  PreparedFit& prepared;
  FitParts* parts = nullptr;  // null: the fit has one part
};

/// The batches of one `fit()` circulate between a queue of free batches and a queue for each worker, or one
/// for all workers. A null batch for each worker of a queue ends an epoch, and `unread()` says that the next
/// batch could not be read. Thread-safe.
class BatchQueues {
 public:
  /// @param shared  one queue for all workers: a batch goes to the first worker that asks.
  BatchQueues(int workers, std::span<const std::unique_ptr<Batch>> batches, bool shared = false)
      : shared_(shared),
        group_(std::max<std::size_t>(1, batches.size() / (2 * static_cast<std::size_t>(workers)))),
        free_(batches.size(), kLooks) {
    for (const auto& batch : batches) free_.push(batch.get());
    // Room for the nulls that end an epoch, so that their push never waits, and for unread().
    const auto marks = static_cast<std::size_t>(shared ? 2 * workers : 2);
    for (int w = 0; w < (shared ? 1 : workers); ++w)
      filled_.push_back(std::make_unique<BoundedQueue<Batch*>>(batches.size() + marks));
  }

  bool shared() const { return shared_; }
  /// How many trained batches a worker may keep and return together, so that a reader that is ahead is
  /// seldom woken. At least half of the batches stay with the reader and in the queues. Dealt in turn, these
  /// reach every worker that waits for data while the others wait at a merge.
  std::size_t group() const { return group_; }
  BoundedQueue<Batch*>& of(int worker) { return *filled_[shared_ ? 0 : static_cast<std::size_t>(worker)]; }
  BoundedQueue<Batch*>& free() { return free_; }
  Batch* unread() { return &unread_; }
  /// Wakes every thread that waits for a batch or for room.
  void close() {
    for (auto& queue : filled_) queue->close();
    free_.close();
  }

 private:
  static constexpr int kLooks = 100;  // polls before the reader sleeps: a worker may need its core

  const bool shared_;
  const std::size_t group_;
  Batch unread_;  // only its address is used
  BoundedQueue<Batch*> free_;
  std::vector<std::unique_ptr<BoundedQueue<Batch*>>> filled_;  // [worker]
};

/// What the threads of one `fit()` share.
struct FitRun {
  /// @param exchange  is aborted by a failure; nullptr: none. @param link  to the other nodes; nullptr: none.
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

  /// The iterator has failed: the run fails when a worker needs the next batch, so that the rounds and the
  /// epoch before it end. Called by the reader. Arguments: see FirstFailure.
  template <typename Where>
  void failReading(std::exception_ptr cause, Where where) noexcept {
    try {
      readingFailed_ = where();
    } catch (...) {  // no memory for the text
      return fail(-1, std::move(cause), where);
    }
    whyReadingFailed_ = std::move(cause);
    for (int w = 0; w < place.local; ++w) queues.of(w).push(queues.unread());
  }
  /// A worker needs the batch that could not be read.
  void failUnread() noexcept {
    fail(-1, whyReadingFailed_, [this] { return readingFailed_; });
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
  // Written before unread() is pushed.
  std::string readingFailed_;
  std::exception_ptr whyReadingFailed_;
};

}  // namespace muster
