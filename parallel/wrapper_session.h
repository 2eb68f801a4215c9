#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/runtime/stall_watch.h"
#include "muster/parallel/training/memory_need.h"
#include "muster/parallel/training/replica_set.h"

namespace muster {

/// What a wrapper makes for the nodes that it trains with, and makes again when nodes join or leave: the
/// strategy, the workers with their replicas, and the watch over their threads.
class WrapperSession {
 public:
  /// @param caller, reading  of the wrapper's other threads, for the watch. All arguments must outlive this.
  WrapperSession(Model& model, const ParallelOptions& options, const Placements& placements, Activity& caller,
                 const Activity& reading);

  /// See `listenersHere`.
  const Listeners& listeners() const { return listeners_; }
  ReplicaSet& replicas() { return replicas_; }
  const ReplicaSet& replicas() const { return replicas_; }
  StallWatch& watch() { return watch_; }
  /// The memory that the replicas need; nothing if the model has no parameters yet, or if some worker is on a
  /// GPU and has no mirror.
  std::optional<MemoryNeed> memoryNeed() const;
  /// Makes the replicas, if memory has room for them.
  /// @param first  the first batch; without examples if none is left to train.
  /// @param training  false: for an evaluation.
  /// @throws OutOfMemory naming the largest parts; TrainingError as ReplicaSet::make.
  void makeReplicas(const Batch& first, bool training);
  /// Calls `Model::fitBeforeTraining`. @throws TrainingError for any failure.
  void fitBeforeTraining(DataSetIterator& users);
  /// Reads the first batch of epoch `epoch` that is not trained, and prepares the model for it.
  /// @param begun  what is trained of the epoch.
  /// @param first  its stamp receives the position of its first example.
  /// @return false if there is no batch.  @throws TrainingError for any failure.
  bool prepareModel(DataSetIterator& data, std::int64_t epoch, const EpochPosition& begun, Batch& first);
  /// Gives the replicas the state of the model or of its checkpoint, the same on all nodes. Waits for the
  /// other nodes. @param users  the user's iterator. @param data  what is read: its batches, joined.
  /// @param parts  of a fit over elastic nodes; else null.
  /// @throws TrainingError for a failure; InvalidArgument if there are no batches, or as requireAgreement;
  ///         SavedStateError as resumptionOf; OutOfMemory.
  PreparedFit prepareFit(DataSetIterator& users, DataSetIterator& data, std::int64_t epochs, FitParts* parts);
  /// See ParallelWrapper::plan.
  std::string plan() const;

 private:
  Model& model_;
  const ParallelOptions& options_;
  const Placements& placements_;
  Activity& caller_;
  const std::shared_ptr<NodeLink> link_;  // for elastic nodes: used by the replicas while they live
  const Listeners listeners_;
  ReplicaSet replicas_;
  StallWatch watch_;  // last: ends before what it reads
};

/// The listeners that are called on this node: those of all workers, those of all nodes, and on node 0 the
/// other merged ones, in the order of their calls.
/// @param report  adds a listener that logs each merge.
Listeners listenersHere(Listeners listeners, bool report, int node);

/// The settings of tests; the defaults without any.
detail::Internals internalsOf(const ParallelOptions& options);

}  // namespace muster
