#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/attached_state.h"
#include "muster/core/nn/listener.h"
#include "muster/core/nn/predictor.h"
#include "muster/core/nn/step_ticket.h"
#include "muster/core/nn/training_counters.h"
#include "muster/core/optim/optimizer.h"

namespace muster {

namespace detail {
class GuardedStep;
}

/// How to run a network forward by hand, without a loss.
struct ForwardPass {
  bool training = true;  ///< dropout is active, statistics change; `backward` may follow in any case
  bool replaceStatistics = false;  ///< in training: running statistics become those of the input alone
  std::int64_t call = 0;           ///< number of the pass: each draws different random numbers
  std::int64_t firstExample = 0;   ///< position of the input's first example in the whole batch
};

/// The interface through which `parallel/` uses a network. A model of your own implements `replicate`,
/// `gradient` and `blocks` (and `forward` and `backward` for DataParallel); the rest has defaults. A model
/// that updates itself implements both `update` and `updaterState`, and never has an Optimizer. Use a model
/// from one thread at a time.
class Model : public detail::Predictor, public detail::TrainingCounters, public detail::AttachedState {
 public:
  /// @param options  how it is trained.
  /// @param context  where it computes; must outlive it. nullptr: its own CPU context with one thread.
  explicit Model(TrainingOptions options = {}, Context* context = nullptr);
  ~Model() override;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// A model of the same architecture and options on `context`, which must outlive it, with its own blocks.
  /// Called on each worker's own thread, several at a time. The caller copies the state.
  virtual std::unique_ptr<Model> replicate(Context& context) const = 0;
  /// Computes the loss of `batch` and overwrites the gradient block. Reads `batch.stamp` for random streams.
  /// The batch may be refilled on return, whether the work is done or only enqueued on `context()`.
  virtual StepTicket gradient(const Batch& batch) = 0;
  /// The parameters and gradients (float32 [P], one segment table; also float64 in a model that updates
  /// itself), and any statistics. The base class keeps the updater's state and the counters. Once the model
  /// is ready, the blocks and their memory never change.
  virtual std::span<StateBlock> blocks() = 0;

  /// Infers open shapes and parameters from a first batch. Called before `replicate`.
  virtual void prepare(const Batch& /*first*/) {}
  /// Called at the start of each `fit`, of the model or of a ParallelWrapper, before `prepare`: may read the
  /// data set once, to learn from it what is not trained. Every node of a training reads the same data set.
  /// The iterator is reset afterwards. Default: does nothing.
  virtual void fitBeforeTraining(DataSetIterator& /*data*/) {}
  /// Applies the gradient block to the parameters. @return the regularisation penalty before the update.
  virtual double update(const BatchStamp& stamp);
  /// float64 [1] on the model's device: 1 if the last enqueued step changed nothing because its loss or
  /// gradient was not finite, else 0. A merge may read it on the device before the host reads the score. The
  /// same memory every time. Default: undefined, steps are not enqueued.
  virtual Tensor stepRefused() { return {}; }
  /// Whether its steps write finite numbers only, or are refused. If not, workers check parameters,
  /// statistics and the updater's state before each merge. Default: false.
  virtual bool refusesNonFinite() const { return false; }
  /// The state of `update` between steps: blocks of kind UpdaterState, which are merged and copied like the
  /// others. Default: the optimizer's.
  virtual std::span<StateBlock> updaterState() { return optimizer().state(); }
  /// `gradient` and `update`; the score includes the penalty. If it computes at once (on the CPU), it throws
  /// NonFiniteScore before the update, also if statistics are not finite; if it only enqueues, the caller
  /// that reads the score must check it (`requireFinite`); a network's parameters do not change then, either.
  /// Statistics are restored after an exception.
  virtual StepTicket step(const Batch& batch);
  /// What the model computes, as text: its layers with their settings, the seed of its random streams. Nodes
  /// that train together must have the same text. Default: empty.
  virtual std::string configurationText() const { return {}; }

  /// Runs the network on `input` without a loss and keeps what `backward` needs. `output` is resized, on the
  /// CPU. Default as `output`.
  virtual void forward(const Tensor& input, Tensor& output, const ForwardPass& pass);
  /// As above, in training; each call is the next pass, numbered from 0 over the life of this object.
  void forward(const Tensor& input, Tensor& output);
  /// After `forward`: overwrites the gradient block, for `gradOutput` = d loss / d output, and writes d loss
  /// / d input to `gradInput`, which is resized, unless it is null. May be called again for the same pass.
  /// Default as `forward`.
  virtual void backward(const Tensor& gradOutput, Tensor* gradInput);

  /// All blocks: `blocks()`, the updater's state and the counters, in a fixed order.
  std::vector<StateBlock*> state();
  /// The block of this kind in `blocks()`. @throws InvalidArgument if there is none.
  StateBlock& block(BlockKind kind);
  /// How many numbers the model learns: the elements of all parameters, without the padding between them.
  /// @throws InvalidArgument while the model has no parameters.
  std::int64_t parameterCount();
  /// Copies parameters, statistics and counters from a model of the same architecture on any device, and the
  /// updater's state if `withUpdaterState`. Done on return; waits for both contexts first.
  /// @throws InvalidArgument naming the block that differs.
  void copyStateFrom(Model& other, bool withUpdaterState = true);

  const TrainingOptions& trainingOptions() const { return options_; }
  /// Created at the first call. @throws InvalidArgument while the model has no parameters.
  Optimizer& optimizer();
  Context& context() const { return *context_; }

  /// Multiplies all learning rates; 1 unless a listener such as ReduceOnPlateau changes it. Not part of the
  /// state. Change it between steps, as a merged listener does: all replicas follow.
  double learningRateFactor() const { return *learningRateFactor_; }
  /// @throws InvalidArgument unless it is finite and not negative.
  void setLearningRateFactor(double factor);
  /// Takes over the factor of another model, now and later. For replicas.
  void followLearningRate(const Model& other);
  /// The updater's schedule times the factor, which it follows.
  Schedule learningRate() const;

  /// Trains on the calling thread: for each epoch resets the iterator and takes a step for each batch. After
  /// a checkpoint was loaded, it continues there; the rest of an epoch is the first of the `epochs`.
  /// @throws InvalidArgument for epochs < 0, if another training reads the iterator, or naming the batch that
  ///         the model refuses; FileError for a checkpoint with impossible numbers; NonFiniteScore naming the
  ///         batch; whatever the iterator or a listener throws.
  void fit(DataSetIterator& data, std::int64_t epochs = 1) { fit(data, epochs, {}); }
  /// As above, and ends like `stopFit` once `stop` is requested, also if it was requested before the call.
  void fit(DataSetIterator& data, std::int64_t epochs, const std::stop_token& stop);
  /// Trains until the model has finished `epochs` epochs over all its calls: `fit(data, epochs - epoch())`.
  /// If it has, a log line says that nothing is left. So a program that is started again with a larger total
  /// continues, and with a smaller one ends at once.
  void fitUntil(DataSetIterator& data, std::int64_t epochs, const std::stop_token& stop = {}) {
    fit(data, epochsUntil(epochs), stop);
  }
  /// Epochs that are left until the model has finished `epochs`; 0, and a log line, if none is.
  std::int64_t epochsUntil(std::int64_t epochs) const;
  void setListeners(Listeners listeners) { listeners_ = std::move(listeners); }
  /// Ends `fit()` after the step in progress. Thread-safe; no effect outside `fit()`.
  void stopFit() { stopRequested_ = true; }
  using detail::Predictor::score;
  /// The score of the last step of `fit`; after a wrapper's `fit`, the mean since its last merge.
  double score() const { return lastScore_; }
  void setScore(double score) { lastScore_ = score; }

  /// Called by what reads or changes the model. @param what  begins the message, as in "save".
  /// @throws InvalidArgument if another thread trains the model. A listener may use it on the thread that
  ///         called `fit()`.
  void requireNotTrainedElsewhere(std::string_view what) const;

 private:
  TrainingOptions options_;
  std::unique_ptr<Context> ownContext_;
  Context* context_;
  std::unique_ptr<Optimizer> optimizer_;  // created at the first call
  std::unique_ptr<detail::GuardedStep> step_;
  Listeners listeners_;
  std::atomic<bool> stopRequested_{false};
  double lastScore_ = 0;
  std::shared_ptr<double> learningRateFactor_ = std::make_shared<double>(1);
  std::atomic<std::thread::id> trainedBy_{};  // the thread whose `fit()` trains it
  friend class TrainingUse;
  std::int64_t passes_ = 0;  // number of forward(input, output) calls
};

}  // namespace muster
