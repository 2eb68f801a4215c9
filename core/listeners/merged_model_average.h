#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "muster/core/nn/model.h"

namespace muster {

/// Options of a MergedModelAverage.
struct MergedModelAverageOptions {
  /// Exponential moving average: in [0, 1). Empty: all models count alike (stochastic weight averaging).
  std::optional<double> decay = 0.999;
  std::int64_t start = 0;  ///< the model has finished this many iterations when the first one counts
  std::int64_t every = 1;  ///< a model counts after each multiple of this many iterations
};

/// Averages the parameters of the merged models of a training, with any strategy; with `Model::fit`, those
/// after each step. It does not change the training's bits.
///
///     a = d a + (1 - d) p,   d = min(decay, (1 + n) / (10 + n))      moving average
///     a = (n a + p) / (n + 1)                                        without decay
///
/// n models have counted before p; the first one is copied. The average is kept in float64 with the model
/// (Model::listenerState), 8 bytes per parameter, and the next `fit()` with a listener of the same options
/// continues it; with other options, or if the model was set back to an earlier iteration, it starts again.
/// An iteration counts once. With batch normalisation call `recomputeStatistics(average->model(), data)`
/// after the training. It has the merged scope: a ParallelWrapper copies all merged state to the user's
/// model. Sources: Polyak and Juditsky 1992; Izmailov et al. 2018 (SWA).
class MergedModelAverage final : public Listener {
 public:
  /// @throws InvalidArgument for a decay outside [0, 1), start < 0 or every < 1.
  explicit MergedModelAverage(const MergedModelAverageOptions& options = {});

  void onFitStart(const FitEvent& event) override;
  void onMerge(const MergeEvent& event) override;

  /// How many models are averaged.
  std::int64_t count() const;
  /// A model of its own, on the CPU, that is filled at each call: with the average as parameters, and with
  /// statistics and counters of the model that was trained last, which must be alive. These statistics belong
  /// to other parameters: see recomputeStatistics. Another model of the architecture takes it by
  /// `copyStateFrom`.
  /// @throws InvalidArgument if no model has counted.
  Model& model();

 private:
  void see(Model& model, std::int64_t iteration);
  /// Takes the state from the model, or begins it there.
  void attach(Model& model);

  const MergedModelAverageOptions options_;
  const std::string name_;
  Model* trained_ = nullptr;
  Tensor average_;  // float64 [P], on the trained model's device
  Tensor numbers_;  // float64 [2] on the CPU: models that count; iterations at the last merge
  std::unique_ptr<Context> context_;
  std::unique_ptr<Model> model_;
};

}  // namespace muster
