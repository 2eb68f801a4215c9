#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/listener.h"
#include "muster/core/nn/step_ticket.h"
#include "muster/core/optim/optimizer.h"

namespace muster {

/// How a network is run forward by hand, without a loss.
struct ForwardPass {
  bool training = true;           ///< dropout acts, statistics move; `backward` may follow either way
  std::int64_t call = 0;          ///< number of the pass: each draws random numbers of its own
  std::int64_t firstExample = 0;  ///< position in the whole batch of the input's first example
};

/// Values under a name, on the CPU.
struct NamedValues {
  std::string name;
  Tensor values;
};

/// All that `parallel/` knows of a network. A model of one's own writes `replicate`, `gradient` and `blocks`
/// (`forward` and `backward` for DataParallel); the rest has defaults. One that updates itself writes
/// `update` and `updaterState`, both, and never has an Optimizer. A model is used by one thread at a time.
class Model {
 public:
  /// @param options  how it is trained.
  /// @param context  where it computes; must outlive it. nullptr: a CPU context of its own with one thread.
  explicit Model(TrainingOptions options = {}, Context* context = nullptr);
  virtual ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// A model of the same architecture and options on `context`, which outlives it, with blocks of its own.
  /// Called on each worker's own thread, several at a time. Its state need not be copied: the caller does
  /// that.
  virtual std::unique_ptr<Model> replicate(Context& context) const = 0;
  /// Computes the loss of `batch` and overwrites the gradient block. Reads `batch.stamp` for random streams.
  /// The batch may be refilled on return, whether the work is done or only enqueued on `context()`.
  virtual StepTicket gradient(const Batch& batch) = 0;
  /// The parameters and gradients (float32 [P], one segment table; of float64, too, in a model that updates
  /// itself), and any statistics. The updater's state and the counters are kept by the base class. The same
  /// blocks, at the same place, for the life of the model once it is ready.
  virtual std::span<StateBlock> blocks() = 0;

  /// Infers whatever is still open (shapes, parameters) from a first batch. Called before `replicate`.
  virtual void prepare(const Batch& first);
  /// Applies the gradient block to the parameters. @return the regularisation penalty from before the update.
  virtual double update(const BatchStamp& stamp);
  /// What `update` keeps from step to step: blocks of kind UpdaterState, which are merged and copied with the
  /// others. Default: the optimizer's.
  virtual std::span<StateBlock> updaterState();
  /// `gradient` and `update`; the score includes the penalty. Where it computes at once (on the CPU) it
  /// throws NonFiniteScore before the update; where it only enqueues, whoever waits for the score has to look
  /// at it
  /// (`requireFinite`); a network's parameters stay as they were then, too.
  virtual StepTicket step(const Batch& batch);
  /// What the model predicts for the batch's features: `out` is resized, and lies on the CPU.
  /// @throws InvalidArgument where a model does not implement it.
  virtual void output(const Batch& batch, Tensor& out);
  /// What a batch calls the labels and the mask that `output` is compared with. Default: nothing, which means
  /// its first labels, and its first mask that is not called "features".
  virtual std::string_view outputName() const;
  /// The mean loss of a batch, without training and without penalty. Same default.
  virtual double score(const Batch& batch);

  /// Runs the network on `input` without a loss and keeps what `backward` needs. `output` is resized, and
  /// lies on the CPU. Same default.
  virtual void forward(const Tensor& input, Tensor& output, const ForwardPass& pass);
  /// The same in training, each call the next pass, numbered from 0 over the life of this object.
  void forward(const Tensor& input, Tensor& output);
  /// Behind `forward`: overwrites the gradient block, given `gradOutput` = d loss / d output, and writes
  /// d loss / d input to `gradInput`, which is resized, unless it is null. May be called again for the same
  /// pass. Same default.
  virtual void backward(const Tensor& gradOutput, Tensor* gradInput);

  /// All blocks: `blocks()`, the updater's state and the counters, in a fixed order.
  std::vector<StateBlock*> state();
  /// The block of this kind in `blocks()`. @throws InvalidArgument if there is none.
  StateBlock& block(BlockKind kind);
  /// Copies parameters, statistics and counters from a model of the same architecture, on whatever device,
  /// and the updater's state where `withUpdaterState`. Done on return; waits for both contexts first. @throws
  /// InvalidArgument naming the block that differs.
  void copyStateFrom(Model& other, bool withUpdaterState = true);

  /// What the strategy of a ParallelWrapper keeps beside the model (outer momentum, residuals), as of the
  /// last merge. It is saved and loaded with the model, and the next wrapper with such a strategy goes on
  /// from it. `fit` and `init` clear it.
  std::vector<NamedValues>& strategyState() { return strategyState_; }

  const TrainingOptions& trainingOptions() const { return options_; }
  /// Made when it is first asked for. @throws InvalidArgument while the model has no parameters.
  Optimizer& optimizer();
  Context& context() const { return *context_; }

  /// Iterations (rounds) and epochs finished over all `fit()` calls. They drive schedules and are saved.
  std::int64_t iteration() const;
  std::int64_t epoch() const;
  void setCounters(std::int64_t iteration, std::int64_t epoch);

  /// Trains on one thread, this one: for each epoch resets the iterator and steps through its batches.
  /// @throws InvalidArgument for epochs < 0; NonFiniteScore naming the batch; whatever the iterator or a
  ///         listener throws.
  void fit(DataSetIterator& data, std::int64_t epochs = 1);
  /// As above, and ends like `stopFit` once `stop` is requested, also if that was before the call.
  void fit(DataSetIterator& data, std::int64_t epochs, const std::stop_token& stop);
  void setListeners(Listeners listeners) { listeners_ = std::move(listeners); }
  /// Ends `fit()` after the step in progress. Thread-safe; without effect outside `fit()`.
  void stopFit();
  /// The score of the last step that `fit` took; after a wrapper's, the mean since its last merge.
  double score() const { return lastScore_; }
  void setScore(double score) { lastScore_ = score; }

 private:
  TrainingOptions options_;
  std::unique_ptr<Context> ownContext_;
  Context* context_;
  std::unique_ptr<Optimizer> optimizer_;  // made when first asked for
  StateBlock counters_;
  std::vector<NamedValues> strategyState_;
  Listeners listeners_;
  std::atomic<bool> stopRequested_{false};
  double lastScore_ = 0;
  std::int64_t passes_ = 0;  // by forward(input, output)
};

}  // namespace muster
