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
  std::vector<Tensor> statistics;  // the statistics alone
  Tensor gradients;
};

/// A replica on its thread, and its part of a pass. While the thread runs no task, the caller's thread may
/// use the members.
struct Replica {
  /// @param threads  number of threads that its operations use on the CPU.
  /// @param sums  exchanges statistics between the replicas' layers; outlives this object.
  Replica(int index, const Placement& placement, int threads, PeerSums& sums);

  /// Takes what has changed in the user's model since the last call.
  /// @param train  whether the next pass will change the replica's own statistics.
  void load(const ModelBlocks& users, bool train);
  /// Sets `gradientsThere` to the gradients on device `to`: the gradient block itself, or a copy of it,
  /// complete on return.
  void bringGradients(Device to);

  PeerEnd peers;
  ModelBlocks blocks;
  bool stale = true;             // whether the user's model has changed since `load`
  bool statisticsMoved = false;  // whether the replica's own pass has changed its statistics
  Part inputPart, outputPart;
  Tensor input, output, gradOutput, gradInput;
  Tensor gradientsThere;  // on the user's model's device
  ReplicaThread thread;   // last: destroyed before the members above
};

/// The replicas of a DataParallel.
using Replicas = std::span<const std::unique_ptr<Replica>>;  // [replica]

/// Runs `task` for each replica on its thread and waits for all of them.
/// @throws TrainingError, as in "replica 1 on cpu failed in forward: ...", as runOnAll for threads does.
void runOnAll(Replicas replicas, std::string_view problem, const std::function<void(Replica&)>& task);

/// Makes `whole` as large along `dim` as the replicas' shards together, and sets `part` of each replica to
/// the place of its shard. Copies nothing.
/// @param what  name of the shards in messages, as in "output".
/// @throws InvalidArgument naming a shard that does not fit the others.
void joinShards(Replicas replicas, int dim, Tensor Replica::*shard, Part Replica::*part,
                std::string_view what, Tensor& whole);

/// Adds the replicas' gradients, in their order, to those of the user's model. For a model on the CPU each
/// replica's thread adds one slice of all gradients; for a model on a GPU one operation adds them there.
/// @param total  the model's gradients, on `context`.
/// @throws TrainingError naming a replica that failed.
void addGradients(Replicas replicas, Tensor& total, Context& context);

}  // namespace muster
