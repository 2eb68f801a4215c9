#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/strategies/strategy_traits.h"
#include "muster/parallel/training/node_place.h"

namespace muster {

class Worker;

/// Fills the user's model with the last merge. Used by the thread that calls `fit()`.
class ModelFilling {
 public:
  /// @param workers  [local worker]. All arguments must outlive this object.
  ModelFilling(Model& model, Exchange& exchange, const NodePlace& place, const StrategyTraits& traits,
               std::span<const std::unique_ptr<Worker>> workers)
      : model_(model), exchange_(exchange), place_(place), traits_(traits), workers_(workers) {}

  /// Before a training: finds the model's blocks, so that it can be filled after memory has run out.
  void begin();
  /// Whether the model was filled, or resumed, and still holds that merge. Call it after `begin`.
  bool isUnchanged();
  bool filled() const { return filled_; }
  /// The model was resumed: a next training continues from it.
  void setFilled() { filled_ = true; }
  /// See ReplicaSet::fill. Call it once the exchange has finished its work.
  bool fill(bool afterFailure, bool together);
  /// See ReplicaSet.
  std::optional<std::int64_t> updatesAfterReset() const;
  /// Where the merged value of each block is, in the exchange's order; empty if no such state exists. Valid
  /// until the next call.
  std::span<const Tensor> mergedValues();

 private:
  Model& model_;
  Exchange& exchange_;
  const NodePlace place_;
  const StrategyTraits& traits_;
  const std::span<const std::unique_ptr<Worker>> workers_;
  bool filled_ = false;
  std::vector<Tensor> modelValues_;  // the model's values of the shared blocks, in the exchange's order
  std::vector<Tensor> merged_;       // memory of mergedValues()
};

}  // namespace muster
