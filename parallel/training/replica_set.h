#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/parallel/detail/internals.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/merge_plan.h"
#include "muster/parallel/strategies/strategy.h"
#include "muster/parallel/training/resumption.h"
#include "muster/parallel/training/worker.h"

namespace muster {

class NodeLink;

/// The workers of a wrapper and their replicas, and the copies between these and the user's model. Used by
/// the thread that calls `fit()`, but for `times`.
class ReplicaSet {
 public:
  /// What workers on CPUs have beside them.
  struct Company {
    NodeLink* link = nullptr;  ///< other nodes; null: none
    int groups = 1;            ///< as of HostExchange
  };
  /// Starts the workers; `model`, `strategy` and what `company` names must outlive them.
  ReplicaSet(Model& model, const std::vector<Placement>& placements, int threadsPerWorker,
             const Strategy& strategy, const Company& company, const detail::Internals& internals = {});

  const NodePlace& place() const { return place_; }
  std::span<const std::unique_ptr<Worker>> workers() const { return workers_; }  // [local worker]
  std::span<ReplicaThread* const> threads() const { return threads_; }           // [local worker]
  /// Thread-safe.
  std::vector<WorkerTimes> times() const;

  /// How replicas on GPUs are merged, in words, or how it will be tried first until they are made; "" on the
  /// CPU.
  std::string merging() const;

  /// Whether the replicas are made.
  bool made() const { return exchange_ != nullptr; }
  /// Makes them, each on its worker's thread. May be tried again after a failure.
  /// @throws TrainingError naming the worker.
  void make();
  Exchange& exchange() { return *exchange_; }

  /// Before a training: replicas, merged copies and the strategy's blocks take the state of the user's model,
  /// and what the resumption has of them. If the model is as the last training left it, they stay as they
  /// are, and the training goes on.
  /// @return whether they took it.
  /// @throws InvalidArgument for a model or a replica whose blocks are in other memory than before.
  bool load(const Resumption& resumed);
  /// Has the strategy move the replicas from there. @throws what it does.
  void start(Strategy& strategy);
  /// Copies what was merged last to the user's model. Of blocks that workers keep the model gets the mean,
  /// weighted by the examples each worker has trained since `resetTimes`.
  /// @param afterFailure  each replica's blocks of the strategy are not saved: they are ahead of the merge.
  /// @param together  all nodes do it now; else workers on several nodes leave the blocks that they keep out.
  /// @return false if no such state exists: every replica failed in its update, or a merge was broken off.
  ///         The model is then as before.
  /// @throws DeviceFailure if a device is lost.
  bool fill(bool afterFailure, bool together);
  /// Whether the replicas of all blocks are equal to the merged copies, so that a checkpoint of this node is
  /// one of all.
  bool equal() const;
  /// [worker] Examples trained since `fit()` began, also before it was resumed; of this node's workers.
  std::vector<std::int64_t> examples() const;
  /// See `addValues`, and `addInFlight` if something is. After `fill`.
  void addOwn(TrainingState& state, bool inFlight) const;
  /// After a training: whether the replicas' state is good to go on from (or comes from the user's model
  /// again).
  void setTrained(bool trained) { trained_ = trained; }

 private:
  /// The user's model's part of the blocks that are shared, in the exchange's order.
  std::vector<Tensor> sharedValues();
  /// Where the merged value of each block is, in the exchange's order; empty if no such state exists.
  std::vector<Tensor> mergedValues() const;
  void requireSameBlocks();
  /// Whether the user's model holds what `fill` has left there.
  bool isUnchanged();
  void loadReplicas();
  void loadMergedCopies();
  void takeMeanOfKept(const SharedBlock& block);
  std::vector<std::int64_t> examplesOfAll() const;

  const NodePlace place_;
  const Company company_;
  Model& model_;
  const Strategy& strategy_;
  const std::optional<Route> failingRoute_;   // for tests
  const std::optional<MergePlan> mergePlan_;  // of workers on GPUs
  std::unique_ptr<Exchange> exchange_;        // none until the replicas are made
  std::vector<std::int64_t> examplesBefore_;  // [worker] by the `fit()` that was resumed
  bool trained_ = false;
  bool filled_ = false;                           // the user's model, since the replicas were made
  std::vector<ReplicaThread*> threads_;           // [local worker]
  std::vector<std::unique_ptr<Worker>> workers_;  // last: threads end before what they use
};

}  // namespace muster
