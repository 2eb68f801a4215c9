#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/device/device.h"
#include "muster/core/nn/evaluated.h"
#include "muster/core/nn/training_state.h"

namespace muster {

class Model;

/// A worker's time since `fit()` began, and its work.
struct WorkerTimes {
  int worker = 0;
  Device device = {};
  std::int64_t batches = 0;
  std::int64_t examples = 0;
  std::chrono::nanoseconds computing{0};
  std::chrono::nanoseconds waitingForData{0};
  std::chrono::nanoseconds waitingForWorkers{0};  ///< and to be woken, at the end of rounds
  std::chrono::nanoseconds merging{0};
};

/// The object that trains: a Model by itself, or a ParallelWrapper.
class Trainer : public Evaluated {
 public:
  /// The user's model: in a call of a merged listener it holds the merged state, elsewhere the state last
  /// asked for. Do not change it: a ParallelWrapper trains its replicas, so changes before onFitEnd are
  /// lost. A ParallelWrapper copies the merged state into it in this call, not before: a listener that keeps
  /// a reference to the model must call this before it reads the model, or it reads an earlier merge.
  virtual Model& model() = 0;
  /// Copies the state of a worker's replica to `into`, a model of the same architecture, on any device; for
  /// merged listeners in onMerge, onEpochEnd and onFitEnd. After plain averaging all replicas are equal; with
  /// gossip, elastic or hierarchical averaging, streaming or arrivals they may differ.
  /// @throws InvalidArgument if there is no such worker, it is on another node, or the caller is no such
  ///         listener.
  virtual void copyReplica(int worker, Model& into);
  virtual int workers() const = 0;
  /// Evaluates `model()` by its own task, or the given one, on a data set that the training does not read at
  /// the same time; a ParallelWrapper uses all its workers. For listeners, in calls on the thread that called
  /// `fit()`. In a training over nodes all nodes make the same calls (NodeListener), as for the `evaluate`
  /// functions that call it. Source: core/eval.
  /// @throws as ParallelWrapper::evaluateTask, or as core/eval's `evaluate` if a Model trains by itself;
  ///         InvalidArgument for the iterator that the training reads, which would miss batches.
  AnyEvaluation evaluateTask(DataSetIterator& data, std::optional<Task> task = {}) override;
  /// The iterator that the training reads; null before and after it.
  virtual const DataSetIterator* trainingData() const { return nullptr; }
  /// Ends `fit()` soon: each worker finishes its step, and the steps are merged. Thread-safe; listeners may
  /// call it.
  virtual void stopFit() = 0;
  /// Time and work of each worker since `fit()` began, [worker].
  virtual std::vector<WorkerTimes> workerTimes() const = 0;
  /// A copy of what a checkpoint needs besides `model()`, as of the last merge. For merged listeners in
  /// onMerge, onEpochEnd and onFitEnd. It is empty after a failure, also of a merge that has not landed, and
  /// within an epoch with arrivals on the wall clock; then the next `fit()` starts the epoch again. Over
  /// nodes it is empty, too, if replicas differ although StrategyTraits::replicasDiffer denies it.
  virtual TrainingState trainingState() { return {}; }
};

/// `fit()` begins.
struct FitEvent {
  Trainer& trainer;
  std::int64_t firstEpoch = 0;                       ///< epochs that the model finished before
  std::int64_t epochs = 1;                           ///< that this call trains
  std::optional<std::int64_t> batchesPerEpoch = {};  ///< if the iterator knows it
};

/// An epoch begins, or has ended and has been merged.
struct EpochEvent {
  Trainer& trainer;
  std::int64_t epoch = 0;      ///< from 0 over the model's life
  std::int64_t iteration = 0;  ///< iterations finished
  double score = 0;            ///< mean over the epoch's examples; 0 when it begins
  std::int64_t examples = 0;   ///< trained in this epoch
};

/// One worker has finished one step.
struct IterationEvent {
  Trainer& trainer;
  int worker = 0;
  BatchStamp stamp;
  std::int64_t examples = 0;
  double score = 0;
};

/// What a merge combined.
enum class MergeKind {
  State,             ///< all state of the replicas
  Gradients,         ///< their gradients; all replicas were updated by the mean
  Updates,           ///< encoded updates of the parameters
  Resynchronisation  ///< encoded updates, then all residuals, and the other state
};

/// A number that a strategy reports with a merge, as {"staleness", 2}.
struct MergeValue {
  std::string_view name;
  double value = 0;
};

/// The replicas have been merged, or all have been updated by the merged gradients; or, with a rule whose
/// merges land later, a merge was launched.
struct MergeEvent {
  Trainer& trainer;
  MergeKind kind = MergeKind::State;
  /// Whether a merge was launched, and whether one was applied: most rules do both at once. If none was
  /// applied, the model is that of the merge before.
  bool launched = true, landed = true;
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;       ///< iterations finished
  std::int64_t batchesInEpoch = 0;  ///< finished by all workers together
  /// Trained by all workers since the last merge; 0 if shared gradients resynchronise at an epoch's end.
  std::int64_t examples = 0;
  double score = 0;  ///< mean over those examples
  std::chrono::nanoseconds mergeTime{0};
  /// Bytes that a worker would send to the others: the merged state (encoded, with shared gradients), on
  /// average over the contributing workers; 0 with one worker.
  std::int64_t bytes = 0;
  /// Distance of the replicas from their mean before the merge: sqrt(sum_w p_w |x_w - m|^2) / |m| over the
  /// parameters, p_w each worker's share; 0 if it was not measured (`measureDivergence`, `readsDivergence`).
  /// With shared gradients, at a resynchronisation: the withheld updates relative to the parameters.
  double divergence = 0;
  /// Further numbers that the strategy reports; its documentation names them. Valid during the call.
  std::span<const MergeValue> values = {};
};

/// Per worker: called on that worker's thread with its index. Merged: called after a merge, on the thread
/// that called `fit()`, while no worker runs.
enum class ListenerScope { Worker, Merged };

/// Receives the events of a training. It is called from several threads, but one call at a time, so it needs
/// no locks. An exception from it ends `fit()`; a ParallelWrapper throws it as a TrainingError.
///
/// `onFitStart`, `onEpochStart`, `onEpochEnd` and `onFitEnd` are called once each, for either scope, on the
/// thread that called `fit()`; `onFitEnd` also after a failure, when all workers have stopped. `onIteration`
/// is called for Worker scope after each step, `onMerge` for Merged scope after each merge. A Model that
/// trains by itself is one worker that merges after each step.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual ListenerScope scope() const { return ListenerScope::Merged; }
  /// Whether `onMerge` reads `MergeEvent::divergence`. If so, averaging on the CPU or over nodes measures it
  /// at the first 64 merges of a run and then ever more rarely, also without `measureDivergence(true)`.
  virtual bool readsDivergence() const { return false; }
  virtual void onFitStart(const FitEvent&) {}
  virtual void onEpochStart(const EpochEvent&) {}
  virtual void onIteration(const IterationEvent&) {}
  virtual void onMerge(const MergeEvent&) {}
  virtual void onEpochEnd(const EpochEvent&) {}
  virtual void onFitEnd(Trainer&) {}
};
/// The listeners of a training, called in this order, but a StateRecorder (core/nn/state_recorder.h) last.
using Listeners = std::vector<std::shared_ptr<Listener>>;

}  // namespace muster
