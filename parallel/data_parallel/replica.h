#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/parallel/data_parallel/split.h"
#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/runtime/replica_thread.h"

namespace muster {

/// The blocks of a model that DataParallel copies and adds up: parameters, statistics and gradients.
struct ModelBlocks {
  ModelBlocks() = default;
  /// @throws InvalidArgument if the model has no parameters, or no gradients of their size and element type.
  explicit ModelBlocks(Model& model);

  std::vector<Tensor> state;       // parameters and statistics, in the order of blocks()
  std::vector<Tensor> statistics;  // these alone
  Tensor gradients;
};

/// A replica on its thread, and its part of a pass. While the thread runs no task the members are the
/// caller's.
struct Replica {
  /// @param threads  that its operations use on the CPU.
  /// @param sums  where layers of the replicas exchange statistics; outlives it.
  Replica(int index, const Placement& placement, int threads, PeerSums& sums);

  /// Takes what has changed in the user's model since the last call.
  /// @param train  the pass that follows will change the replica's own statistics.
  void load(const ModelBlocks& users, bool train);
  /// Makes `gradientsThere` the gradients on device `to`: the gradient block itself, or a copy of it. Done on
  /// return.
  void bringGradients(Device to);

  PeerEnd peers;
  ModelBlocks blocks;
  bool stale = true;             // the user's model has other parameters
  bool statisticsMoved = false;  // by the replica's own pass, which may have failed
  Part inputPart, outputPart;
  Tensor input, output, gradOutput, gradInput;
  Tensor gradientsThere;  // on the user's model's device
  ReplicaThread thread;   // last: everything above outlives it
};

/// The replicas of a DataParallel.
using Replicas = std::span<const std::unique_ptr<Replica>>;  // [replica]

/// Runs `task` for each replica on its thread and waits for all of them.
/// @throws TrainingError, as in "replica 1 on cpu failed in forward: ...", as runOnAll for threads does.
void runOnAll(Replicas replicas, std::string_view problem, const std::function<void(Replica&)>& task);

/// Makes `whole` as large along `dim` as the replicas' shards together, and notes in `part` where the shard
/// of each replica goes. Copies nothing.
/// @param what  what messages call the shards, as in "output".
/// @throws InvalidArgument naming a shard that does not fit the others.
void joinShards(Replicas replicas, int dim, Tensor Replica::*shard, Part Replica::*part,
                std::string_view what, Tensor& whole);

}  // namespace muster
