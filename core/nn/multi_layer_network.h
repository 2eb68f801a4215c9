#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/layers.h"
#include "muster/core/nn/model.h"

namespace muster {

class Evaluation;

/// A chain of layers and how it is trained.
struct MultiLayerConfiguration {
  std::uint64_t seed = 0;
  Updater updater = {};
  double l1 = 0, l2 = 0, weightDecay = 0;  ///< see TrainingOptions
  double clipNorm = 0, clipValue = 0;      ///< likewise
  Shape inputShape = {};  ///< of one example: [C, H, W] or [F]; empty: taken from the first batch
  std::vector<Layer> layers = {};

  TrainingOptions trainingOptions() const;
  std::string toJson() const;
  /// @throws InvalidArgument naming the field that is unknown, missing or of the wrong type.
  static MultiLayerConfiguration fromJson(std::string_view json);
};

/// A network that is a chain of layers. To be trained by `fit` it ends in an Output; a chain without one has
/// no loss, and is run by `forward` and `backward` alone (or asked for its `output`).
///
/// Its weights come from the configuration's seed, its activations and programs are planned once for each
/// batch shape, and its state lies in flat blocks. Used by one thread at a time.
class MultiLayerNetwork final : public Model {
 public:
  /// @throws InvalidArgument naming the layer or option that cannot be.
  explicit MultiLayerNetwork(MultiLayerConfiguration configuration);
  /// As above, computing on `context`, which outlives it.
  MultiLayerNetwork(MultiLayerConfiguration configuration, Context& context);
  ~MultiLayerNetwork() override;

  /// Makes the parameters and draws them from the seed; the configuration must have an input shape. A second
  /// call draws them again, and zeroes the updater's state and the counters.
  void init();
  bool initialized() const;
  const MultiLayerConfiguration& configuration() const;

  /// A table: layer, output shape, parameters.
  std::string summary() const;
  /// A copy with the same state. @throws InvalidArgument before `init()`.
  std::unique_ptr<MultiLayerNetwork> clone();
  /// Predictions for features [N, ...]: the output layer's activation, [N, classes]; without an output layer
  /// what the last one gives.
  Tensor output(const Tensor& features);
  /// Runs the network over a whole data set. Source: core/eval.
  Evaluation evaluate(DataSetIterator& data);
  /// Writes configuration and state; atomic. @throws FileError. Source: core/io.
  void save(const std::filesystem::path& path);
  /// @throws FileError naming what is wrong with the file.
  static std::unique_ptr<MultiLayerNetwork> load(const std::filesystem::path& path);

  using Model::forward;
  using Model::score;

  // Model. `gradient` and `score` throw InvalidArgument where there is no Output.
  std::unique_ptr<Model> replicate(Context& context) const override;
  StepTicket gradient(const Batch& batch, const GradientReady& onReady) override;
  std::span<StateBlock> blocks() override;
  void prepare(const Batch& first) override;
  void output(const Batch& batch, Tensor& out) override;
  double score(const Batch& batch) override;
  /// `output` is what the loss reads: logits before Softmax or Sigmoid, and without an Output what the last
  /// layer gives; float32 [N, ...]. Random streams are as those of epoch `pass.call`. The gradient by the
  /// input is by the features as the first layer reads them (bytes as value/255).
  void forward(const Tensor& input, Tensor& output, const ForwardPass& pass) override;
  /// @throws InvalidArgument unless a `forward` came before whose activations are still there: `gradient`,
  ///         `step` or `fit` with as many examples overwrite them, as do batches of eight other sizes.
  void backward(const Tensor& gradOutput, Tensor* gradInput) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
