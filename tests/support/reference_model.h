#pragma once

#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/arrays.h"
#include "tests/support/reference_updater.h"

namespace muster::test {

struct ReferenceOptions {
  std::int64_t inputs = 6;  ///< features of an example
  std::int64_t hidden = 5;
  std::int64_t classes = 4;
  double dropout = 0;  ///< rate, after the hidden layer
  std::uint64_t seed = 0;
  TrainingOptions training = {};
};

/// The float32 network with the same architecture, seed and training, hence the same initial weights.
MultiLayerConfiguration networkOf(const ReferenceOptions& options);

/// A small network computed in float64 throughout, by the plain loops of reference_ops: dense, tanh, dropout,
/// dense, softmax cross-entropy. In float64 a statement such as "W workers equal one on the joined batches"
/// is tested to 1e-12 instead of to float32's rounding.
///
/// Features are float32 or float64 [N, inputs]; labels class indices [N] or rows [N, classes]; a mask [N]
/// weights the examples. Dropout equals `MultiLayerNetwork`'s: it depends on the seed, the layer, the epoch
/// and the example's position in the epoch. It updates itself, without an Optimizer.
class ReferenceModel final : public Model {
 public:
  /// @param context  as in Model.
  explicit ReferenceModel(const ReferenceOptions& options = {}, Context* context = nullptr);

  std::unique_ptr<Model> replicate(Context& context) const override;
  StepTicket gradient(const Batch& batch) override;
  std::span<StateBlock> blocks() override { return blocks_; }
  double update(const BatchStamp& stamp) override;
  std::span<StateBlock> updaterState() override { return updater_->state(); }

 private:
  struct Weights {
    Array weight, bias;
  };
  /// Weights of dense layer 0 or 1.
  Weights weightsOf(int layer) const;
  /// Writes the gradients of dense layer 0 or 1.
  void setGradients(int layer, const std::pair<Array, Array>& weightAndBias);
  /// Applies the dropout of the batch with this stamp.
  Array dropped(const Array& x, const BatchStamp& stamp) const;

  ReferenceOptions options_;
  std::vector<StateBlock> blocks_;  // parameters, gradients
  std::unique_ptr<ReferenceUpdater> updater_;
};

}  // namespace muster::test
