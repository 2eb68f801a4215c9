#pragma once

#include <span>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/parallel/runtime/replica_thread.h"

namespace muster {

/// The blocks that can be merged: all except counters, which each replica is given after a round.
std::vector<StateBlock*> sharedState(Model& model);

/// Where the blocks of the replicas are. They must stay there: what is trained in other memory would be lost.
class BlockMemory {
 public:
  /// Adds a replica, in the order of the workers. @param state  its `sharedState`.
  void add(std::span<StateBlock* const> state);
  /// @param threads  of the replicas that were added.
  /// @throws InvalidArgument naming a block of a replica that is in other memory than before, or of a model
  ///         whose blocks are not in the same memory each time.
  void requireSame(Model& model, std::span<ReplicaThread* const> threads) const;

 private:
  std::vector<std::vector<const void*>> replicas_;  // [local worker][block]
};

}  // namespace muster
