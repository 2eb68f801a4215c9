#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/parallel/detail/internals.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/exchange/merge_plan.h"
#include "muster/parallel/training/worker.h"

namespace muster {

/// The workers of a wrapper and their replicas, and the traffic between these and the user's model. Used by
/// the thread that calls `fit()`, but for `times`.
class ReplicaSet {
 public:
  /// Starts the workers; `model` must outlive them.
  /// @param localWork  with a gradient the replicas hold the merged state themselves, else the shadow does.
  ReplicaSet(Model& model, const std::vector<Placement>& placements, int threadsPerWorker,
             bool averageUpdaters, LocalWork localWork, const detail::Internals& internals = {});

  std::span<const std::unique_ptr<Worker>> workers() const { return workers_; }  // [worker]
  std::span<ReplicaThread* const> threads() const { return threads_; }           // [worker]
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

  /// Copies the user's model to the replicas and the shadow; blocks that workers keep stay as they are once
  /// these have trained.
  void spread();
  /// Copies what was merged last to the user's model. What workers keep for themselves is there the mean,
  /// weighted by the examples each has trained since `resetTimes`.
  /// @return false where nobody holds it: every replica failed in its update, or a merge was broken off on
  ///         its way between devices. The model is then as before.
  /// @throws DeviceFailure where a device is lost.
  bool fill();
  /// After a training: whether what workers keep is theirs from now on (or is to come from the user's model
  /// again).
  void setTrained(bool trained) { trained_ = trained; }

 private:
  /// The user's model's part of the blocks that are shared, in the exchange's order.
  std::vector<Tensor> sharedValues();
  /// Where the merged value of each block lies, in the exchange's order; empty where nobody holds it.
  std::vector<Tensor> mergedValues() const;
  void takeMeanOfKept(const SharedBlock& block);

  Model& model_;
  const bool averageUpdaters_;
  const LocalWork localWork_;
  const std::optional<Route> failingRoute_;   // for tests
  const std::optional<MergePlan> mergePlan_;  // of workers on GPUs
  std::unique_ptr<Exchange> exchange_;        // none until the replicas are made
  bool trained_ = false;
  std::vector<ReplicaThread*> threads_;           // the workers'
  std::vector<std::unique_ptr<Worker>> workers_;  // last: threads end before what they use
};

}  // namespace muster
