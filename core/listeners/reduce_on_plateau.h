#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "muster/core/listeners/line_sink.h"
#include "muster/core/listeners/monitored.h"
#include "muster/core/listeners/node_listener.h"
#include "muster/core/nn/model.h"

namespace muster {

/// Options of ReduceOnPlateau.
struct PlateauOptions {
  /// Data for monitors on validation data; null otherwise. Must outlive the listener.
  DataSetIterator* validation = nullptr;
  Monitor monitor = Monitor::Loss;
  std::optional<MonitorMode> mode = {};          ///< which of two values is better; empty: the monitor's
  std::function<double(Trainer&)> measure = {};  ///< of Monitor::Own, at the ends of epochs
  double factor = 0.1;         ///< multiplies the learning rate at each plateau; between 0 and 1
  std::int64_t patience = 10;  ///< epochs without an improvement that make a plateau
  double minImprovement = 0;   ///< a smaller or equal change does not count as an improvement
  double minFactor = 0;        ///< the product of the factors does not go below this
  LineSink sink = {};
};

/// Lowers the learning rate when a training no longer improves: whenever the monitored value has not improved
/// for `patience` epochs, all learning rates (after their schedule) are multiplied by `factor`. Evaluates the
/// merged model at the end of each epoch, with all workers; all replicas, and rules that plan rounds by the
/// learning rate, follow. Rules whose workers arrive one by one plan ahead, by the schedule without factors.
///
/// Later `fit()` calls continue where it was. A training that resumes a checkpoint of one with this listener
/// continues from its numbers (Model::listenerState) and ends with the same bits. With other values of
/// `monitor`, `mode`, `factor` or `minImprovement` it counts anew. With several nodes all use the same value;
/// `measure` must return the same on all of them. Node 0 writes lines.
///
/// Source: PyTorch's ReduceLROnPlateau and Keras's callback, whose counting this is with a cooldown of 0.
class ReduceOnPlateau final : public NodeListener {
 public:
  /// @throws InvalidArgument as Monitored::validate; for a factor outside (0, 1), patience < 1, or a
  ///         minImprovement or minFactor that is negative or not finite.
  explicit ReduceOnPlateau(PlateauOptions options);

  std::string describe() const override;
  /// @throws InvalidArgument as Monitored::requireFits; SavedStateError for a state with impossible numbers,
  ///         FileError if it was loaded from a file.
  void onFitStart(const FitEvent& event) override;
  void onEpochEnd(const EpochEvent& event) override;
  /// The model's factor is 1 again.
  void onFitEnd(Trainer& trainer) override;

  /// The product of the factors so far.
  double factor() const { return now_.factor; }

 private:
  /// What a checkpoint holds.
  struct State {
    double factor = 1;
    double best = 0;     // value
    double without = 0;  // epochs since the best value, or since the last reduction
    double any = 0;      // 1 once there is a value
  };
  void resume(Model& model);
  void remember(Model& model) const;

  const PlateauOptions options_;
  const Monitored monitored_;
  const std::string name_;  // in Model::listenerState
  State now_;
};

}  // namespace muster
