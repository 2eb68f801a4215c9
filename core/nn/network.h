#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/core/nn/described_network.h"
#include "muster/core/nn/evaluated.h"
#include "muster/core/nn/known_features.h"
#include "muster/core/nn/layer.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/model.h"

namespace muster {

namespace detail {
struct NetworkProbe;
}

/// The common base of MultiLayerNetwork and ComputationGraph: a network described by a configuration.
///
/// The weights are drawn from the configuration's seed, activations and programs are planned once for each
/// batch size, and all state is in flat blocks. Use it from one thread at a time.
///
/// A network with one input reads a batch's first features; one with several reads features by the inputs'
/// names. Labels likewise: the first, or those with the outputs' names. `Batch` documents masks.
class Network : public Model, public detail::DescribedNetwork, public Evaluated, public KnownFeatures {
 public:
  ~Network() override;

  /// Creates the parameters and draws them from the seed; every input must have a shape. A second call draws
  /// them again and sets the updater's state and the counters to zero.
  void init();
  bool initialized() const;

  /// Predictions for features [N, ...] of a network with one input: the activation of the first output, [N,
  /// classes]; without an output layer, the output of the last layer.
  Tensor output(const Tensor& features);
  /// The predictions of all outputs, in order.
  std::vector<Tensor> outputs(const Batch& batch);
  /// Fits the shift and scale of all Normalise layers to the features of epoch 0, also if they were fitted
  /// before; an open input shape is taken from the first batch. `fit` does so by itself, once. Without such
  /// layers only the data are read.
  /// @throws InvalidArgument naming the layer, example and place of a value that is not finite; if there are
  ///         no batches, or a training reads the iterator; what the iterator throws.
  void fitNormalisation(DataSetIterator& data);
  /// Whether every Normalise layer was fitted; true without any.
  bool normalisationFitted();
  /// Evaluates the predictions of the first output with the labels that `outputName()` names: by what the
  /// network predicts (`task()`), or the given task; with the network's own loss. Source: core/eval.
  /// @throws InvalidArgument before `init`, for another thread while `fit` runs, and as Evaluated.
  AnyEvaluation evaluateTask(DataSetIterator& data, std::optional<Task> task = {}) override;
  /// Writes configuration and state; atomic. @throws FileError, or OutOfMemory naming the file. Source:
  /// core/io.
  void save(const std::filesystem::path& path);
  /// Reads any network, a chain or a graph. Source: core/io.
  /// @throws FileError naming the fault of the file, or OutOfMemory naming the file.
  static std::unique_ptr<Network> load(const std::filesystem::path& path);

  /// What the network knows of its data: columns, words, classes, the size of pictures. Copies and model
  /// files have it; `init` does not change it. Empty unless it was set or loaded. `fit`, `fitNormalisation`
  /// and evaluations refuse an iterator whose own description differs; to train a loaded model for other
  /// classes or columns, set theirs first.
  const InputDescription& inputDescription() const override;
  /// @throws InvalidArgument if it names more or fewer classes, numbers to predict or features than the
  ///         network has outputs and inputs; before `init`, that or the first batch does.
  void setInputDescription(InputDescription description);

  using Model::forward;
  using Model::score;

  // Model. `gradient` and `score` throw InvalidArgument if no output has a loss.
  std::unique_ptr<Model> replicate(Context& context) const override;
  /// The loss is the weighted sum of the outputs' losses. The ticket's weight is the largest of the outputs'
  /// normalisers. On a GPU it is enqueued, as `step`.
  StepTicket gradient(const Batch& batch) override;
  /// On a GPU the whole step is enqueued: forward, loss, backward and update are recorded once for each form
  /// of batch (element types, shapes, masks) and then launched. The host waits for an updater without
  /// `settings()`. If a step fails or is refused where the host waits, as on the CPU, statistics are
  /// restored, too.
  StepTicket step(const Batch& batch) override;
  Tensor stepRefused() override;
  bool refusesNonFinite() const override { return true; }
  std::span<StateBlock> blocks() override;
  void prepare(const Batch& first) override;
  /// Fits Normalise layers that were never fitted.
  void fitBeforeTraining(DataSetIterator& data) override;
  void output(const Batch& batch, Tensor& out) override;
  std::optional<StepScore> outputAndLoss(const Batch& batch, Tensor& out) override;
  /// By the first output's loss and activation: after softmax Classification; with BinaryCrossEntropy Labels,
  /// but for one unit Classification into two classes; Regression otherwise.
  Task task() const override;
  /// For several outputs, the first one's.
  std::string_view outputName() const override;
  std::string configurationText() const override { return toJson(); }
  /// After `init`.
  Batch exampleFeatures() const override;
  double score(const Batch& batch) override;
  /// For a network with one input and one output. `output` is the input of the loss, logits before Softmax or
  /// Sigmoid; without an Output, the last layer's output; float32 [N, ...]. Random streams are those of epoch
  /// `pass.call`. The input gradient is by the features as the first layer reads them (bytes as value/255).
  void forward(const Tensor& input, Tensor& output, const ForwardPass& pass) override;
  /// @throws InvalidArgument unless a `forward` came before and its activations still exist: `gradient`,
  ///         `step` or `fit` with as many examples overwrite them, as do batches of eight other sizes.
  void backward(const Tensor& gradOutput, Tensor* gradInput) override;

 protected:
  /// @param context  nullptr: its own; see Model.
  Network(const TrainingOptions& options, std::uint64_t seed, Context* context);

  /// Another network of the same configuration, without parameters. @param context  as above.
  virtual std::unique_ptr<Network> make(Context* context) const = 0;
  /// A copy with the same state on its own CPU context. @throws InvalidArgument before `init()`.
  std::unique_ptr<Network> cloneNetwork();

 private:
  friend struct detail::NetworkProbe;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
