#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/nn/evaluated.h"
#include "muster/core/nn/listener.h"
#include "muster/core/nn/model.h"
#include "muster/parallel/nodes.h"
#include "muster/parallel/strategies.h"
#include "muster/parallel/strategies/any_strategy.h"
#include "muster/parallel/training_mode.h"

namespace muster {
namespace detail {
struct Internals;
}

/// The options of a ParallelWrapper, as the Builder has resolved them.
struct ParallelOptions {
  int workers = 1;
  AnyStrategy strategy = Averaging{};
  std::int64_t prefetchBuffer = 16;
  bool reportScoreAfterAveraging = false;
  std::vector<Device> devices = {Device::cpu()};
  std::optional<MathMode> mathMode = {};
  int threadsPerWorker = 1;
  bool pinThreads = true;
  Listeners listeners = {};
  Nodes nodes = {};
  bool nodesGiven = false;
  int groups = 1;
  std::shared_ptr<const detail::Internals> internals = {};  ///< for tests; null: the defaults
};

/// Trains a model with several workers at once. Each worker is a thread with a full replica of the model on
/// its device. Of W workers, worker b mod W gets batch b of an epoch. Every `averagingFrequency` iterations
/// their mean replaces the replicas; it is weighted by the examples that each has trained. After `fit()` the
/// user's model is the merged model.
///
///     auto wrapper = ParallelWrapper::Builder(model).workers(2).averagingFrequency(3).build();
///     wrapper.fit(iterator);
///
/// The workers live as long as the wrapper. The same seed, data, workers, frequency and threads per worker
/// give the same bits on one CPU model, however the threads are scheduled.
///
/// Used by one thread at a time, except `stopFit` and `workerTimes`. The model must outlive the wrapper.
/// While `fit` runs, only listeners may use the model, through their events. After fork() only call exec.
class ParallelWrapper : public Evaluated {
 public:
  class Builder;
  struct Impl;  // in wrapper_impl.h, for tests

  ~ParallelWrapper() override;
  ParallelWrapper(ParallelWrapper&&) noexcept;
  ParallelWrapper& operator=(ParallelWrapper&&) noexcept;

  /// Trains `epochs` epochs, and resets the iterator before each. Starts from the state of the user's model,
  /// whose iteration and epoch counters continue; a last, partial round is merged, too. After a checkpoint
  /// was loaded into the model it continues from there: the rest of an interrupted epoch is the first of the
  /// `epochs`, and `fitUntil(data, wanted)` ends with the bits of a run that was not interrupted.
  ///
  /// @throws FileError for a loaded checkpoint with impossible numbers; InvalidArgument for epochs < 0, a
  ///         model that the training mode cannot train, or a model or iterator that is in use; TrainingError
  ///         naming worker, device and batch (or iterator or listener) for any failure; OutOfMemory. The
  ///         model then holds the last merge, and the wrapper can be used again. Exceptions from this, and
  ///         what `averageUpdaters(false)` changes: examples/docs/promises.md, "After a failure".
  void fit(DataSetIterator& data, std::int64_t epochs = 1);
  /// As above, and ends like `stopFit` once `stop` is requested. A request before the call counts, too, so it
  /// cannot be lost.
  void fit(DataSetIterator& data, std::int64_t epochs, const std::stop_token& stop);
  /// Trains until the model has finished `epochs` epochs over all its calls, as Model::fitUntil does. If it
  /// has, a log line says that nothing is left.
  void fitUntil(DataSetIterator& data, std::int64_t epochs, const std::stop_token& stop = {});

  /// Evaluates the user's model with all workers, by what it predicts (`Model::task`) and with its own loss,
  /// or by the given task; so do the functions of Evaluated that call it. The counts equal those of
  /// `evaluate(model, data)` for any number of workers, and the bits of the next `fit()` do not change. Each
  /// worker needs memory for another copy of the model's state. The iterator is reset to epoch 0.
  ///
  /// Listeners may call it, too (or `Trainer::evaluate`), wherever they are called on the thread that called
  /// `fit()`, with a data set that the training does not read; they get the merged model's evaluation.
  ///
  /// @throws InvalidArgument if there are no batches, the model is not initialised, or `fit()` runs and the
  ///         caller is no such listener; TrainingError naming the worker, device and batch, or the iterator,
  ///         for any failure (of several, the earliest batch). The wrapper can be used again.
  AnyEvaluation evaluateTask(DataSetIterator& data, std::optional<Task> task = {}) override;

  /// Ends `fit()` soon: each worker finishes its step, and all training so far is merged. Thread-safe, and
  /// safe in a signal handler; has no effect when `fit()` is not running.
  void stopFit() noexcept;

  /// Time and work of each worker since the last `fit()` began, [worker]; updated at each merge. Thread-safe.
  std::vector<WorkerTimes> workerTimes() const;

  /// The effective plan in words: workers, devices, threads, pinning, merging, batches in a round.
  /// Between GPUs it names the transport in use; before the first `fit()`, the transport that will be
  /// tried first.
  std::string plan() const;
  const ParallelOptions& options() const;

 private:
  ParallelWrapper(Model& model, const ParallelOptions& options);
  std::unique_ptr<Impl> impl_;
};

/// Collects the options of a ParallelWrapper; `build()` checks them all.
class ParallelWrapper::Builder {
 public:
  /// The model that will hold the result; it is copied for the workers, never used as one.
  explicit Builder(Model& model) : model_(model) {}

  /// Threads, each with a replica, on each node. Default: 1 on the CPU. 1 to 1024 over all nodes.
  Builder& workers(int count) { return set(options_.workers, count); }
  /// When the replicas are merged, and by which rule: `Averaging{.frequency = 3}`,
  /// `OuterAveraging::diloco()`, `SynchronousGradients{}`, `SharedGradients{...}`, or an option struct of
  /// your own (see StrategyOptions). Default: averaging every iteration.
  template <StrategyOptions T>
  Builder& strategy(T options) {
    strategy_.emplace(std::move(options));
    return *this;
  }

  // Shorter forms of `strategy(...)`; do not use both.

  /// One of the library's three common strategies. Default: averaging.
  Builder& trainingMode(TrainingMode mode) { return set(trainingMode_, mode); }
  /// As Averaging::frequency. Default 1.
  Builder& averagingFrequency(std::int64_t iterations) { return set(averagingFrequency_, iterations); }
  /// Merges every iteration until the model has finished this many iterations, then at the averaging
  /// frequency (Period::postLocal). Default 0.
  Builder& synchronousUntil(std::int64_t iteration) { return set(synchronousUntil_, iteration); }
  /// As Averaging::updaterState: true is UpdaterState::Average, false is Keep. Default true. See `fit` for
  /// what the user's model holds if it is false.
  Builder& averageUpdaters(bool average) { return set(averageUpdaters_, average); }
  /// As Averaging::measureDivergence. Default false.
  Builder& measureDivergence(bool measure) { return set(measureDivergence_, measure); }
  /// The options of TrainingMode::SharedGradients; refused in other modes.
  Builder& sharedGradients(SharedGradients options) { return set(sharedGradients_, std::move(options)); }

  /// Batches read ahead, for all workers together. Default 16. 0: a batch is read when a worker needs
  /// it. Not used while workers read their own batches (DataSetIterator::numbered).
  Builder& prefetchBuffer(std::int64_t batches) { return set(options_.prefetchBuffer, batches); }
  /// Logs the mean score and the time of each merge. Default false.
  Builder& reportScoreAfterAveraging(bool report) { return set(options_.reportScoreAfterAveraging, report); }
  /// Worker i of W runs on device i mod D, as in `Device::parseList("cuda:0,cuda:1")` or `allGpus()`
  /// (core/device/choose_device.h); a GPU may have up to 32. Default: the CPU. GPUs and the CPU cannot mix.
  Builder& devices(std::vector<Device> devices) { return set(options_.devices, std::move(devices)); }
  /// How workers multiply float32 numbers; parameters, updates and merges stay float32. Default: TF32 if a
  /// GPU has it, else fp32. A CPU may have fp32 and bf16 (`whyNoMathMode`); `plan()` says the mode.
  Builder& mathMode(MathMode mode) { return set(options_.mathMode, mode); }
  /// Threads that one worker's operations use on the CPU. Default 1. 1 to 1024.
  Builder& threadsPerWorker(int threads) { return set(options_.threadsPerWorker, threads); }
  /// Pins each worker on the CPU to cores that no other pinned worker has, in this process or in others that
  /// share /tmp. With too few cores, or a CPU quota below the workers' threads, no worker is pinned; `plan()`
  /// gives the reason. Default true.
  Builder& pinThreads(bool pin) { return set(options_.pinThreads, pin); }
  /// Listeners of either scope; replaces earlier ones.
  Builder& listeners(Listeners listeners) { return set(options_.listeners, std::move(listeners)); }
  /// Trains on several nodes at once (see Nodes, and parallel/nodes.md for listeners, evaluations,
  /// checkpoints and failures), with workers on CPUs or GPUs. `stopFit` on any node stops all at the end of
  /// their round. A node that fails, or is silent for too long, ends `fit` on all others with a TrainingError
  /// that names it. Default: one node, which is an error if a launcher has started several processes: each
  /// would train the whole model. `Nodes()` allows that.
  Builder& nodes(Nodes nodes) {
    options_.nodesGiven = true;
    return set(options_.nodes, std::move(nodes));
  }
  /// Each mean adds up the workers in this many groups (worker w is in group w mod groups), then the groups,
  /// so one process gives the bits of that many nodes. Must divide `workers`. Default 1. CPU only.
  Builder& groups(int count) { return set(options_.groups, count); }
  /// For tests: replaces parts of the implementation.
  Builder& internals(const detail::Internals& internals);

  /// @throws InvalidArgument naming an option out of range, or workers on GPUs and on the CPU together;
  ///         DeviceUnavailable for a device that cannot be used, with those that can.
  ParallelWrapper build();

 private:
  template <typename T, typename Value>
  Builder& set(T& option, Value&& value) {
    option = std::forward<Value>(value);
    return *this;
  }
  AnyStrategy resolveStrategy() const;
  AnyStrategy averaging() const;
  void refuseAveragingOptions(std::string_view reason) const;

  Model& model_;
  ParallelOptions options_;
  // As the user has set them; empty if not set.
  std::optional<AnyStrategy> strategy_;
  std::optional<TrainingMode> trainingMode_;
  std::optional<std::int64_t> averagingFrequency_, synchronousUntil_;
  std::optional<bool> averageUpdaters_, measureDivergence_;
  std::optional<SharedGradients> sharedGradients_;
};

}  // namespace muster
