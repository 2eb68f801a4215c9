#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/core/nn/layer.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/model.h"

namespace muster {

class Evaluation;

namespace detail {
struct NetworkInput;
struct NetworkOutline;
struct NetworkPlan;
struct NetworkProbe;
}  // namespace detail

/// What chains and graphs of layers have in common: a network that is described by a configuration.
///
/// Its weights come from the configuration's seed, its activations and programs are planned once for each
/// batch size, and its state lies in flat blocks. Used by one thread at a time.
///
/// A network with one input reads a batch's first features, one with several reads them by the inputs' names.
/// Likewise the first labels, or those named as the outputs. What a mask is for, `Batch` says.
class Network : public Model {
 public:
  ~Network() override;

  /// Makes the parameters and draws them from the seed; every input must have a shape. A second call draws
  /// them again, and zeroes the updater's state and the counters.
  void init();
  bool initialized() const;

  /// A table: layer, type, what it reads unless that is the layer before, output shape, parameters; as long
  /// as the shape of an input is open, without the last two. Ends with a newline.
  std::string summary() const;
  /// The layers' names and output shapes, without the batch, in the order in which they run.
  /// @throws InvalidArgument while the shape of an input is open.
  std::vector<std::pair<std::string, Shape>> outputShapes() const;
  /// Predictions for features [N, ...] of a network with one input: the activation of the first output, [N,
  /// classes]; without an output layer what the last one gives.
  Tensor output(const Tensor& features);
  /// The same of all outputs, in their order.
  std::vector<Tensor> outputs(const Batch& batch);
  /// Runs the network over a whole data set, and counts what its first output predicts against its labels,
  /// which `outputName()` names. Source: core/eval.
  Evaluation evaluate(DataSetIterator& data);
  /// Writes configuration and state; atomic. @throws FileError. Source: core/io.
  void save(const std::filesystem::path& path);
  /// Reads any network, a chain or a graph. Source: core/io.
  /// @throws FileError naming what is wrong with the file.
  static std::unique_ptr<Network> load(const std::filesystem::path& path);
  /// The configuration as JSON.
  virtual std::string toJson() const = 0;

  using Model::forward;
  using Model::score;

  // Model. `gradient` and `score` throw InvalidArgument where no output has a loss.
  std::unique_ptr<Model> replicate(Context& context) const override;
  /// The loss is the sum of the outputs' losses times their weights. The ticket's weight is the largest of
  /// the outputs' normalisers. On a GPU it is enqueued, as `step` is.
  StepTicket gradient(const Batch& batch) override;
  /// On a GPU the whole step is enqueued: forward, loss, backward and update are recorded once for each form
  /// of batch (element types, shapes, masks) and launched from then on. Updaters of one's own without
  /// `settings()` are waited for instead.
  StepTicket step(const Batch& batch) override;
  std::span<StateBlock> blocks() override;
  void prepare(const Batch& first) override;
  void output(const Batch& batch, Tensor& out) override;
  /// The first output's, where there are several.
  std::string_view outputName() const override;
  double score(const Batch& batch) override;
  /// Of a network with one input and one output. `output` is what the loss reads: logits before Softmax or
  /// Sigmoid, and without an Output what the last layer gives; float32 [N, ...]. Random streams are as those
  /// of epoch `pass.call`. The gradient by the input is by the features as the first layer reads them (bytes
  /// as value/255).
  void forward(const Tensor& input, Tensor& output, const ForwardPass& pass) override;
  /// @throws InvalidArgument unless a `forward` came before whose activations are still there: `gradient`,
  ///         `step` or `fit` with as many examples overwrite them, as do batches of eight other sizes.
  void backward(const Tensor& gradOutput, Tensor* gradInput) override;

 protected:
  /// @param context  nullptr: one of its own; see Model.
  Network(const TrainingOptions& options, std::uint64_t seed, Context* context);

  /// As the configuration gives them; shapes may be open.
  virtual std::vector<detail::NetworkInput> inputs() const = 0;
  /// Lays the configuration out, whose inputs all have shapes. @throws InvalidArgument.
  virtual detail::NetworkPlan layOut() const = 0;
  /// What is known of the nodes while shapes are open, in the order in which they run.
  virtual std::vector<detail::NetworkOutline> outline() const = 0;
  virtual void setInputShapes(std::span<const Shape> shapes) = 0;
  /// Another network of the same configuration, without parameters. @param context  as above.
  virtual std::unique_ptr<Network> make(Context* context) const = 0;
  /// A copy with the same state on a context of its own, on the CPU. @throws InvalidArgument before `init()`.
  std::unique_ptr<Network> cloneNetwork();

 private:
  friend struct detail::NetworkProbe;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
