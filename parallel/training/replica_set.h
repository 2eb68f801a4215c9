#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/strategies/strategy.h"
#include "muster/parallel/training/block_memory.h"
#include "muster/parallel/training/exchange_choice.h"
#include "muster/parallel/training/internals.h"
#include "muster/parallel/training/model_filling.h"
#include "muster/parallel/training/resumption.h"
#include "muster/parallel/training/worker.h"
#include "muster/parallel/training/worker_blocks.h"

namespace muster {

class NodeLink;

/// The workers of a wrapper and their replicas, and the copies between these and the user's model. Used by
/// the thread that calls `fit()`, except `times`.
class ReplicaSet {
 public:
  /// Other nodes, and groups of workers on CPUs.
  struct NodeOptions {
    NodeLink* link = nullptr;  ///< other nodes; null: none
    int groups = 1;            ///< see HostExchange
  };
  /// Starts the workers; `model`, `strategy` and what `nodes` names must outlive them.
  ReplicaSet(Model& model, const std::vector<Placement>& placements, int threadsPerWorker,
             const Strategy& strategy, const NodeOptions& nodes, const detail::Internals& internals = {});

  const NodePlace& place() const { return place_; }
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
  /// @param strategy  that of the constructor.
  /// @return whether they took it.
  /// @throws InvalidArgument for a model or a replica whose blocks are in other memory than before; what the
  ///         strategy throws.
  bool begin(Strategy& strategy, const Resumption& resumed);
  /// Copies the last merge to the user's model. Blocks that each worker keeps for itself are averaged,
  /// weighted by the examples each worker has trained since `resetTimes`.
  /// @param afterFailure  each replica's blocks of the strategy are not saved: they are ahead of the merge.
  /// @param together  true: a collective call of all nodes; false: with several nodes, leaves out the blocks
  ///                  that workers keep.
  /// @return false if no such state exists: every replica failed in its update, or a merge was not finished.
  ///         The model does not change then.
  /// @throws DeviceFailure if a device is lost.
  bool fill(bool afterFailure, bool together);
  /// After `fill`: the updates that the updater's state has had which it copied, if a merge has reset it.
  std::optional<std::int64_t> updatesAfterReset() const { return filling_->updatesAfterReset(); }
  /// The blocks that may differ from worker to worker. Call it once the replicas are made.
  WorkerBlocks workerBlocks() const { return {*exchange_, place_, traits_}; }
  /// [worker] Examples trained since `fit()` began, also before it was resumed; of this node's workers.
  std::vector<std::int64_t> examples() const;
  /// Calls `addValues`, and `addSection` for what the rule and `inFlight` need. Call it after `fill`. Over
  /// nodes it collects the state that may differ, for which the other nodes must answer.
  /// @param examples  [worker] of all nodes, if the model lacks the mean of blocks that each worker keeps.
  void addOwn(TrainingState& state, bool inFlight, std::span<const std::int64_t> examples);
  /// A training has failed, so the replicas' state may be anything: the next one starts from the user's
  /// model.
  void setUntrained() { trained_ = false; }

 private:
  bool load(const Resumption& resumed);
  void start(Strategy& strategy);
  void loadReplicas();
  void takeCounters(Model& replica) const;
  void beginOwnUpdates();

  const NodePlace place_;
  NodeLink* const link_;
  Model& model_;
  const Strategy& strategy_;
  const StrategyTraits traits_;
  const ExchangeChoice choice_;
  const std::function<void(const Model&)> replicaMade_;  // for tests
  std::unique_ptr<Exchange> exchange_;                   // none until the replicas are made
  std::unique_ptr<MergeUndo> undo_;                      // of the exchange's merges
  std::optional<ModelFilling> filling_;                  // of the exchange's merges
  BlockMemory memory_;                                   // of the replicas
  std::vector<std::int64_t> examplesBefore_;             // [worker] trained before this `fit()` was resumed
  bool trained_ = false;
  std::vector<ReplicaThread*> threads_;           // [local worker]
  std::vector<std::unique_ptr<Worker>> workers_;  // last: destroyed before the members that the threads use
};

}  // namespace muster
