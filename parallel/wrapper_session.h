#pragma once

#include <memory>
#include <optional>
#include <string>

#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/runtime/stall_watch.h"
#include "muster/parallel/training/internals.h"
#include "muster/parallel/training/memory_need.h"
#include "muster/parallel/training/replica_set.h"

namespace muster {

/// What a wrapper makes for the nodes that it trains with, and makes again when nodes join or leave: the
/// strategy, the workers with their replicas, and the watch over their threads.
class WrapperSession {
 public:
  /// @param caller, reading  of the wrapper's other threads, for the watch. All arguments must outlive this.
  WrapperSession(Model& model, const ParallelOptions& options, const Placements& placements,
                 const Activity& caller, const Activity& reading);

  Strategy& strategy() { return *strategy_; }
  ReplicaSet& replicas() { return replicas_; }
  const ReplicaSet& replicas() const { return replicas_; }
  StallWatch& watch() { return watch_; }
  /// The memory that the replicas need; nothing: it is not known.
  std::optional<MemoryNeed> memoryNeed() const;
  /// Makes the replicas, if memory has room for them.
  /// @param first  the first batch; without examples if none is left to train.
  /// @param training  false: for an evaluation.
  /// @throws OutOfMemory naming the largest parts; TrainingError as ReplicaSet::make.
  void makeReplicas(const Batch& first, bool training);
  /// See ParallelWrapper::plan.
  std::string plan() const;

 private:
  Model& model_;
  const ParallelOptions& options_;
  const Placements& placements_;
  const std::shared_ptr<NodeLink> link_;  // for elastic nodes: used by the replicas while they live
  const std::unique_ptr<Strategy> strategy_;
  ReplicaSet replicas_;
  StallWatch watch_;  // last: ends before what it reads
};

/// The settings of tests; the defaults without any.
detail::Internals internalsOf(const ParallelOptions& options);

}  // namespace muster
