#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/parallel/data_parallel/split.h"
#include "muster/parallel/runtime/placement.h"
#include "muster/parallel/runtime/task_thread.h"
#include "muster/parallel/training/peer_sums.h"

namespace muster {

/// The blocks of a model that replicas have in common: parameters and statistics, and its gradients.
struct ModelBlocks {
  ModelBlocks() = default;
  /// @throws InvalidArgument without parameters, or gradients of their size and element type.
  explicit ModelBlocks(Model& model);

  std::vector<Tensor> state;       // parameters and statistics, in the order of blocks()
  std::vector<Tensor> statistics;  // these alone
  Tensor gradients;
};

/// A thread with a device, a context and a replica, all made and destroyed on that thread, and the replica's
/// parts of a pass. While no task runs its members are the caller's.
struct ReplicaThread {
  /// @param exchange  outlives it.
  ReplicaThread(int number, Placement where, PeerSums& exchange);

  /// As in "replica 1 on cpu".
  std::string name() const;
  /// Takes from the user's model what it has changed there since.
  /// @param train  the pass that follows will move the replica's own statistics.
  void load(const ModelBlocks& truth, bool train);
  /// Makes `gradientsThere` the gradients on device `to`, a copy where they lie elsewhere. Done on return.
  void bringGradients(Device to);

  const int index;
  const Placement placement;
  PeerEnd peers;
  std::unique_ptr<Context> context;
  std::unique_ptr<Model> model;
  ModelBlocks blocks;
  bool stale = true;             // the user's model has other parameters
  bool statisticsMoved = false;  // by the replica's own pass, which may have failed
  Part inputPart, outputPart;
  Tensor input, output, gradOutput, gradInput;
  Tensor gradientsThere;  // on the user's model's device
  TaskThread thread;      // last: everything above outlives it
};

}  // namespace muster
