#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "muster/core/interop/dl4j/detail/options.h"
#include "muster/core/optim/optimizer.h"

namespace muster::dl4j::detail {

/// Collects the training options of all layers, which muster has once for the network. Layers may differ in
/// their constant learning rate.
class TrainingReader {
 public:
  /// Adds a layer with parameters.
  /// @param regularised  whether L1, L2 and weight decay act on one of them.
  /// @return the factor of its learning rate.
  double add(const Options& layer, bool regularised);
  TrainingOptions options() const { return options_; }
  /// What Deeplearning4j compares to keep the state of neighbouring parameters in one block; empty: no state.
  static std::string updaterKey(const Options& layer);
  /// The number with which a new state is filled: Deeplearning4j's AdaGrad and RMSProp begin with epsilon.
  double initialState() const { return initialState_; }

 private:
  struct Terms {
    double l1 = 0, l2 = 0, weightDecay = 0;
    bool operator==(const Terms&) const = default;
  };
  double addUpdater(const Options& layer);
  void addTerms(const Options& layer);
  void addClipping(const Options& layer);

  TrainingOptions options_;
  std::optional<boost::json::object> updater_;  // of the first layer, without its learning rate
  double learningRate_ = 0;                     // of the first layer
  double initialState_ = 0;
  std::optional<Terms> terms_;
  std::optional<double> clipValue_;
};

}  // namespace muster::dl4j::detail
