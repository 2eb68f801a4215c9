#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/parallel/training/exchange_choice.h"
#include "muster/parallel/training/resumption.h"
#include "muster/parallel/training/worker.h"
#include "muster/parallel/training/worker_blocks.h"

namespace muster {

class NodeLink;

/// The workers of a wrapper and their replicas, and the copies between these and the user's model. Used by
/// the thread that calls `fit()`, except `times`.
class ReplicaSet {
 public:
  /// Starts the workers; `model` and `link` must outlive them.
  /// @param link  other nodes; null: none. @param groups  see HostExchange.
  ReplicaSet(Model& model, const std::vector<Placement>& placements, int threadsPerWorker,
             const AnyStrategy& strategy, NodeLink* link = nullptr, int groups = 1,
             const detail::Internals& internals = {});

  const NodePlace& place() const { return place_; }
  Strategy& strategy() const { return *strategy_; }
  /// The strategy's traits with the workers of all nodes.
  const StrategyTraits& traits() const { return traits_; }
  const NodeLink* link() const { return link_; }                                 // null: no other nodes
  std::span<const std::unique_ptr<Worker>> workers() const { return workers_; }  // [local worker]
  std::span<ReplicaThread* const> threads() const { return threads_; }           // [local worker]
  /// Thread-safe.
  std::vector<WorkerTimes> times() const;

  /// How replicas on GPUs or nodes are merged, as text; before they are made, the transport that is tried
  /// first; "" on the CPUs of one node.
  std::string merging() const { return exchange_ ? exchange_->describe() : choice_.describe(); }

  /// Whether workers are on GPUs, with mirrors of their replicas in host memory.
  bool mirrored() const { return choice_.mirrored(); }

  /// Whether the replicas are made.
  bool made() const { return exchange_ != nullptr; }
  /// Makes the replicas, each on its worker's thread. May be tried again after a failure.
  /// @throws TrainingError naming the worker.
  void make();
  Exchange& exchange() { return *exchange_; }
  MergeUndo* undo() { return undo_.get(); }  // null until the replicas are made

  /// Before a training: replicas, merged copies and the strategy's blocks take the state of the user's model
  /// and of the resumption, and the strategy begins. If the model has not changed since the last training,
  /// they keep their values, and the training continues.
  /// @return whether they took it.
  /// @throws InvalidArgument for a model or a replica whose blocks are in other memory than before; what the
  ///         strategy throws.
  bool begin(const Resumption& resumed);
  /// Copies the last merge to the user's model. Blocks that each worker keeps for itself are averaged,
  /// weighted by the examples each worker has trained.
  /// @param now  the ledger after that merge.
  /// @param afterFailure  each replica's blocks of the strategy are not saved: they are ahead of the merge.
  /// @param together  true: a collective call of all nodes; false: with several nodes, leaves out the blocks
  ///                  that workers keep.
  /// @return false if no such state exists: every replica failed in its update, or a merge was not finished.
  ///         The model does not change then.
  /// @throws DeviceFailure if a device is lost.
  bool fill(const Ledger& now, bool afterFailure, bool together);
  /// After `fill`: the updates that the updater's state has had which it copied, if a merge has reset it.
  std::optional<std::int64_t> updatesAfterReset() const;
  /// The blocks that may differ from worker to worker. Call it once the replicas are made.
  WorkerBlocks workerBlocks() const { return {*exchange_, place_, traits_}; }
  /// Adds what a checkpoint holds of the replicas and of the strategy. Call it after `fill`. Over nodes it
  /// collects the state that may differ, for which the other nodes must answer.
  /// @param means  the model lacks the means of blocks that each worker keeps.
  void addOwn(TrainingState& state, const Ledger& now, bool means);
  /// A training has failed, so the replicas' state may be anything: the next one starts from the user's
  /// model.
  void setUntrained() { trained_ = false; }

 private:
  bool load(const Resumption& resumed);
  void requireSameMemory();
  void start();
  void loadReplicas();
  void takeCounters(Model& replica) const;
  void beginOwnUpdates();
  bool isModelUnchanged();
  void fillFrom(std::span<const Tensor> merged, bool afterFailure, bool together);
  std::span<const Tensor> mergedValues();

  const NodePlace place_;
  NodeLink* const link_;
  Model& model_;
  const std::unique_ptr<Strategy> strategy_;
  const StrategyTraits traits_;
  const ExchangeChoice choice_;
  const std::function<void(const Model&)> replicaMade_;  // for tests
  std::unique_ptr<Exchange> exchange_;                   // none until the replicas are made
  std::unique_ptr<MergeUndo> undo_;                      // of the exchange's merges
  std::vector<std::vector<const void*>> memory_;         // [local worker] of the replicas' shared blocks
  bool trained_ = false;
  bool filled_ = false;                  // whether the model was filled, or resumed
  std::vector<Tensor> modelValues_;      // the model's values of the shared blocks, in the exchange's order
  std::vector<Tensor> merged_;           // memory of mergedValues()
  std::vector<ReplicaThread*> threads_;  // [local worker]
  std::vector<std::unique_ptr<Worker>> workers_;  // last: destroyed before the members that the threads use
};

}  // namespace muster
