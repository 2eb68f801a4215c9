#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string_view>

#include "muster/core/base/mutex.h"
#include "muster/core/device/peers.h"
#include "muster/core/nn/listener.h"
#include "muster/core/nn/model.h"
#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/runtime/replica_thread.h"
#include "muster/parallel/runtime/time_sheet.h"
#include "muster/parallel/training/merge_shares.h"

namespace muster {

/// Calls listeners of Worker scope, one call at a time over all workers.
struct WorkerListeners {
  Trainer& trainer;
  Listeners listeners;
  Mutex mutex;
};

/// The steps of one replica: runs them, reads their scores, counts them in the worker's contribution and
/// calls the listeners. Layers of the replica add up numbers with those of the workers in the same step. Used
/// by the worker's thread, and by others while it runs no task.
class ReplicaSteps final : private Peers {
 public:
  ReplicaSteps(ReplicaThread& thread, TimeSheet& times) : thread_(thread), times_(times) {}

  /// A run begins, from the ledger `start`.
  void begin(MergeShares& shares, PeerSums& sums, Exchange& exchange, WorkerListeners& listeners,
             const Ledger& start);
  void end() { thread_.context().setPeers(nullptr); }
  /// Trains a batch: runs a step, or computes the gradient alone. If the device only enqueues a step, its
  /// score is read while the next step runs, unless a listener needs the replica right after the step.
  void train(Batch& batch);
  /// Waits for the score of the last step, unless it was read.
  void finish();
  /// Before a merge that may come before the last score: counts that step without its score. @return false if
  /// there is no such step, or its weight is not known yet.
  bool countWithoutScore();
  /// Called before a merge. Finds the replica's largest magnitude if the merge needs it, and requires finite
  /// numbers of a model that has its own updates (the library's updates guarantee them).
  void lookAtReplica();
  /// Updates the replica after a merge of gradients.
  void update(const Participant& me, const Decision& decision);

  /// What was trained since the last merge.
  Contribution& contribution() { return contribution_; }
  /// The stamp of the batch in progress, or of the last one.
  const BatchStamp& current() const { return current_; }
  bool hadBatch() const { return hadBatch_; }
  /// Whether the replica's parameters are those of a finished update.
  bool whole() const { return whole_; }
  void setWhole(bool whole) { whole_ = whole; }

 private:
  void sum(std::span<double> values) override;

  struct Step {
    StepTicket ticket;
    BatchStamp stamp;
    std::int64_t examples;
  };
  bool computesGradients() const { return shares_->localWork() == LocalWork::Gradient; }
  /// Counts an update, if the worker counts its own.
  void stampUpdate(BatchStamp& stamp) {
    if (updates_ != nullptr) stamp.update = static_cast<std::int64_t>(++updates_->count);
  }
  /// Waits for the score of a step. @throws NonFiniteScore, or InvalidArgument for an impossible weight.
  StepScore awaitScore(const Step& step);
  /// Counts a step in the contribution, without its score.
  void count(const BatchStamp& stamp, std::int64_t examples, double weight);
  void callListeners(double score);

  ReplicaThread& thread_;
  TimeSheet& times_;
  // Set by `begin`:
  MergeShares* shares_ = nullptr;
  PeerSums* sums_ = nullptr;
  std::string_view whyNoSums_;
  WorkerListeners* listeners_ = nullptr;
  OwnUpdates* updates_ = nullptr;  // if the worker counts its own updates; see kOwnUpdates
  Contribution contribution_;
  BatchStamp current_;
  bool hadBatch_ = false;                     // in this run
  std::optional<Step> begun_;                 // the step whose score is not read yet
  double score_ = 0;                          // of the last finished step
  std::int64_t examples_ = 0;                 // of that step
  std::chrono::nanoseconds waitedInStep_{0};  // for other workers, since the step began
  bool whole_ = true;
};

}  // namespace muster
